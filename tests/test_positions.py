from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from jitlint.finding import Span
from jitlint.positions import Positions

SAMPLES = {
    "empty": "",
    "blank": "\n\n",
    "no newline": "x = 1",
    "crlf and tabs": "if x:\r\n\ty = (\r\n\t\t1,\r\n\t)\r\n",
    "layout": "@a\nclass A(  B ): # c\n\n  # d\n  def f(self, *, x: int=1) -> (y): pass ; z\n# e\n",
    "strings": "x = '''a\nb''' 'c'\ny = f'{x!r:>{w}}'\n",
    "expressions": "( a if b else c ) ; [*x, {**y}][1:2, ::3]; lambda: (yield); not (a) in b < c\n",
    "statements": "try: a\nexcept E as e: b\nmatch x:\n  case [A(b=1), *_] if c: d\n"
    "with (a as b): c\n",
    "this file": Path(__file__).read_text("utf-8"),
    "the engine": Path(cst.__file__).with_name("_batched_visitor.py").read_text("utf-8"),
}


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_positions_are_those_of_the_provider(text):
    module = cst.parse_module(text)
    expected = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    positions = Positions(module)
    for node, place in expected.items():
        start, end = place.start, place.end
        assert positions[node] == Span(start.line, start.column + 1, end.line, end.column + 1)
