"""Where the keys of a TOML document stand: `tomllib` gives values without positions."""

import re
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_HEADER = re.compile(r"\[\[?[^\n]*?\]\]?[ \t]*(?=#|\r?\n|\Z)")
_KEY_PART = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)"""
_KEY = re.compile(rf"{_KEY_PART}(?:[ \t]*\.[ \t]*{_KEY_PART})*")
_STRING = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


def locate(text: str) -> dict[KeyPath, int]:
    """The line (from 1) of every key and of every item of an array.

    `text` must be a valid document. `("tool", "x", "select", 1)` is the second item of
    `select` in the table `tool.x`.
    """
    return _Locator(text).document()


class _Locator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[KeyPath, int] = {}

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        arrays: dict[KeyPath, int] = {}
        while self._more():
            if not self._peek("["):
                self._pair(table)
                continue
            line = self._line()
            header = self._take(_HEADER).strip()
            table = _path(header.strip("[]").strip())
            if header.startswith("[["):
                self._lines.setdefault(table, line)
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            self._lines.setdefault(table, line)
        return self._lines

    def _more(self) -> bool:
        self._take(_BLANK)
        return self._at < len(self._text)

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = (*table, *_path(self._take(_KEY)))
        for end in range(len(table) + 1, len(path) + 1):
            self._lines.setdefault(path[:end], line)
        self._take(_SPACE)
        self._at += 1  # the equals sign
        self._take(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline_table(path)
        elif self._peek('"') or self._peek("'"):
            self._take(_STRING)
        else:
            self._take(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self._at += 1
        index = 0
        while self._next_item("]"):
            item: KeyPath = (*path, index)
            self._lines[item] = self._line()
            self._value(item)
            index += 1

    def _inline_table(self, path: KeyPath) -> None:
        self._at += 1
        while self._next_item("}"):
            self._pair(path)

    def _next_item(self, end: str) -> bool:
        """Goes to the next item; false, and past `end`, when there is none."""
        self._take(_BLANK)
        if self._peek(","):
            self._at += 1
            self._take(_BLANK)
        if self._peek(end):
            self._at += 1
            return False
        return True

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _peek(self, prefix: str) -> bool:
        return self._text.startswith(prefix, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError(f"not TOML: {self._text[self._at : self._at + 20]!r}")
        self._at = match.end()
        return match.group()


def _path(key: str) -> KeyPath:
    """The parts of a dotted key, unquoted by the TOML parser itself."""
    parts: list[str] = []
    value: object = tomllib.loads(f"{key} = 0")
    while isinstance(value, dict):
        (part, value), *_ = value.items()
        parts.append(part)
    return tuple(parts)
