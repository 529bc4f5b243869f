"""One file as bytes, as text and as a tree."""

import ast
import codecs
import functools
import io
import re
import sys
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

LINE_END = re.compile(r"\r\n|\r|\n")
"""What ends a line for Python; `str.splitlines` would also split at form feeds."""

MAX_DEPTH = 1500


class UnparsableError(Exception):
    """A file that is not a Python program; lines and columns count from 1."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.line = max(line, 1)
        self.column = max(column, 1)


class NotWritableError(Exception):
    """New text that the file cannot hold without a change outside of the edit."""


@dataclass(frozen=True, slots=True)
class Text:
    """Decoded content: `mark` is the byte order mark, if there was one."""

    mark: bytes
    encoding: str
    text: str

    def encode(self, text: str) -> bytes:
        try:
            return self.mark + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise NotWritableError(
                f"the new code has characters that {self.encoding} cannot hold"
            ) from error


@dataclass(frozen=True, slots=True)
class Source:
    """A file: where it is, how reports name it, and what is in it.

    `explicit` files were named by the user, the others were found in a folder.
    """

    path: Path
    name: str
    data: bytes
    explicit: bool = False


def read(path: Path, name: str | None = None) -> Source:
    """The file at `path`; raises OSError."""
    return Source(path, path.as_posix() if name is None else name, path.read_bytes())


def decode(data: bytes) -> Text:
    """`data` as Python would read it (byte order mark, coding cookie); raises UnparsableError."""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data[len(mark) :].decode("utf-8" if mark else encoding)
    except (SyntaxError, LookupError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        if "invalid or missing encoding" in reason or "utf-8" in reason:
            raise _not_utf8(data) from error
        raise UnparsableError(f"cannot decode the file: {reason}") from error
    except UnicodeDecodeError as error:
        raise _undecodable(data, error, encoding) from error
    return Text(mark, "utf-8" if mark else encoding, text)


def _not_utf8(data: bytes) -> UnparsableError:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _undecodable(data, error, "utf-8")
    return UnparsableError("cannot decode the file: its coding cookie does not hold")


def _undecodable(data: bytes, error: UnicodeDecodeError, encoding: str) -> UnparsableError:
    before = data[: error.start].decode("latin-1")
    lines = LINE_END.split(before)
    return UnparsableError(
        f"cannot decode the file as {encoding}: byte 0x{data[error.start]:02x}; "
        "save it as UTF-8 or declare its encoding in a coding comment",
        len(lines),
        len(lines[-1]) + 1,
    )


def lines_of(text: str) -> list[str]:
    return LINE_END.split(text)


def lines_with_ends(text: str) -> list[str]:
    """Lines with their ends, split where Python splits them; none of them is empty."""
    lines: list[str] = []
    position = 0
    for line in lines_of(text):
        end = position + len(line)
        end += 2 if text.startswith("\r\n", end) else 1
        lines.append(text[position:end])
        position = end
    return lines[:-1] if lines[-1] == "" else lines


def parse_ast(text: str) -> ast.Module:
    """The tree of the standard library; raises UnparsableError."""
    null = text.find("\0")
    if null >= 0:
        lines = lines_of(text[:null])
        raise UnparsableError("the file contains a null byte", len(lines), len(lines[-1]) + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        reason = error.msg or "invalid syntax"
        version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
        raise UnparsableError(
            f"{reason} ({version})", error.lineno or 1, error.offset or 1
        ) from error
    except (RecursionError, MemoryError) as error:
        raise UnparsableError("the code is nested too deeply to be parsed") from error
    except ValueError as error:
        raise UnparsableError(str(error)) from error


def parse_module(text: str, depth: int) -> cst.Module:
    """The LibCST tree; raises UnparsableError. Call it inside `deep.run`.

    `depth` is how deeply the program is nested: LibCST's own parser has no limit on that,
    and takes quadratic time for it.
    """
    if depth > MAX_DEPTH:
        raise UnparsableError(
            f"the code is nested {depth} levels deep; jitlint reads up to {MAX_DEPTH}"
        )
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise UnparsableError(
            f"LibCST {_libcst_version()} cannot parse this file",
            error.raw_line,
            error.raw_column + 1,
        ) from error
    except (RecursionError, MemoryError) as error:
        raise UnparsableError("the code is nested too deeply to be analysed") from error


@functools.cache
def _libcst_version() -> str:
    from importlib.metadata import version

    return version("libcst")
