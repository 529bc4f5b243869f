import libcst as cst
import pytest

from jitlint import edits
from jitlint.edits import EditError
from jitlint.finding import Fix, Safety
from jitlint.source import NotWritableError, decode


def node(module, code):
    """The first node, from the outside in, whose code is `code`."""
    found = []

    class Find(cst.CSTVisitor):
        def on_visit(self, each):
            if module.code_for_node(each).strip() == code and each is not module:
                found.append(each)
            return not found

    module.visit(Find())
    return found[0]


def replacing(module, changes, **options):
    replacements = {node(module, old): new for old, new in changes.items()}
    return Fix(Safety.SAFE, f"fix {' '.join(changes)}", replacements, **options)


def test_a_node_is_replaced_and_the_rest_kept():
    text = "# a\nx = ( 1+2 )  # b\n\n\ndef f( ):\n\treturn  x\n"
    module = cst.parse_module(text)
    edited = edits.apply(module, [replacing(module, {"( 1+2 )": cst.Name("y")})])
    assert edited.module.code == "# a\nx = y  # b\n\n\ndef f( ):\n\treturn  x\n"
    assert edited.waiting == ()


def test_equal_nodes_elsewhere_are_not_touched():
    module = cst.parse_module("a = b\na = b\n")
    first = module.body[0].body[0].value
    edited = edits.apply(module, [Fix(Safety.SAFE, "t", {first: cst.Name("c")})])
    assert edited.module.code == "a = c\na = b\n"


def test_a_statement_is_removed_or_becomes_several():
    module = cst.parse_module("def f():\n    a\n    b\n    c\n")
    block = module.body[0].body.body
    several = cst.FlattenSentinel([cst.parse_statement("x\n"), cst.parse_statement("y\n")])
    edited = edits.apply(
        module,
        [Fix.remove(block[0]), Fix(Safety.SAFE, "split", {block[1]: several})],
    )
    assert edited.module.code == "def f():\n    x\n    y\n    c\n"


def test_a_body_that_loses_its_only_statement_is_still_one():
    module = cst.parse_module("if x:\n    a\n")
    edited = edits.apply(module, [Fix.remove(module.body[0].body.body[0])])
    assert edited.module.code == "if x:\n    pass\n"


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [("f(a)", "a", "y = z\n"), ("a", "f(a)", "y = f(z)\n"), ("a", "a", "y = f(z)\n")],
)
def test_of_overlapping_fixes_the_first_wins_and_the_other_waits(first, second, code):
    module = cst.parse_module("y = f(a)\n")
    fixes = [
        Fix(Safety.SAFE, title, {target: cst.Name("z")})
        for title, target in (("1", _name(module, first)), ("2", _name(module, second)))
    ]
    edited = edits.apply(module, fixes)
    assert edited.module.code == code
    assert edited.applied == (fixes[0],)
    assert edited.waiting == (fixes[1],)


def _name(module, code):
    value = module.body[0].body[0].value
    return value if code == "f(a)" else value.args[0].value


def test_a_fix_that_waits_blocks_nobody():
    module = cst.parse_module("y = f(g(a))\n")
    outer = module.body[0].body[0].value
    middle = outer.args[0].value
    inner = middle.args[0].value
    fixes = [
        Fix(Safety.SAFE, each, {target: cst.Name("z")})
        for each, target in (
            ("inner", inner),
            ("outer", outer),
            ("other", module.body[0].body[0].targets[0].target),
        )
    ]
    edited = edits.apply(module, fixes)
    assert edited.module.code == "z = f(g(z))\n"
    assert edited.waiting == (fixes[1],)


def test_a_fix_of_several_nodes_is_applied_as_a_whole_or_not_at_all():
    module = cst.parse_module("a = 1\nb = 2\n")
    a, b = (line.body[0].value for line in module.body)
    whole = Fix(Safety.SAFE, "whole", {a: cst.Integer("7"), b: cst.Integer("8")})
    part = Fix(Safety.SAFE, "part", {b: cst.Integer("9")})
    assert edits.apply(module, [part, whole]).module.code == "a = 1\nb = 9\n"
    assert edits.apply(module, [whole, part]).module.code == "a = 7\nb = 8\n"


def test_a_fix_for_another_tree_is_an_error():
    module, other = cst.parse_module("a\n"), cst.parse_module("a\n")
    with pytest.raises(EditError, match="edits a node that is not in the file"):
        edits.apply(module, [Fix.remove(other.body[0])])


def test_a_fix_inside_its_own_replacement_is_an_error():
    module = cst.parse_module("y = f(a)\n")
    call = module.body[0].body[0].value
    fix = Fix(Safety.SAFE, "t", {call: cst.Name("z"), call.args[0].value: cst.Name("q")})
    with pytest.raises(EditError, match="edits inside a node that it replaces"):
        edits.apply(module, [fix])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "import torch\n\nx = y\n"),
        ("import torch\nx = 1\n", "import torch\nx = y\n"),
        ("import os, torch\nx = 1\n", "import os, torch\nx = y\n"),
        ("import os\n\nx = 1\n", "import os\nimport torch\n\nx = y\n"),
        (
            '"""Doc."""\n\nfrom __future__ import annotations\n\nx = 1\n',
            '"""Doc."""\n\nfrom __future__ import annotations\nimport torch\n\nx = y\n',
        ),
        (
            "#!/usr/bin/python\n# licence\nx = 1\n",
            "#!/usr/bin/python\n# licence\nimport torch\n\nx = y\n",
        ),
        ("import torch as t\nx = 1\n", "import torch as t\nimport torch\n\nx = y\n"),
        ("import os\r\nx = 1\r\n", "import os\r\nimport torch\r\n\r\nx = y\r\n"),
        (
            "def f():\n    import torch\nx = 1\n",
            "import torch\n\ndef f():\n    import torch\nx = y\n",
        ),
    ],
)
def test_needed_imports_are_added_once(before, after):
    module = cst.parse_module(before)
    fix = replacing(module, {"1": cst.Name("y")}, imports=("torch", "torch"))
    assert edits.apply(module, [fix]).module.code == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n", "from typing import List\n\nx = y\n"),
        ("from typing import List\nx = 1\n", "from typing import List\nx = y\n"),
        ("from typing import Dict\nx = 1\n", "from typing import List, Dict\nx = y\n"),
    ],
)
def test_names_are_imported_from_a_module(before, after):
    module = cst.parse_module(before)
    fix = replacing(module, {"1": cst.Name("y")}, imports=("typing:List", "typing:List"))
    assert edits.apply(module, [fix]).module.code == after


EXACT = {
    "byte order mark": b"\xef\xbb\xbf%s\n",
    "crlf": b"a = 0\r\n%s\r\nb = 1\r\n",
    "mixed line ends": b"a = 0\r\n%s\nb = 1\rc = 2\r\n",
    "tabs": b"if a:\n\tif b:\n\t\t%s\n",
    "trailing white space": b"a = 0  \n%s  \t \nb = 1 \n   \n",
    "no final newline": b"a = 0\n%s",
    "form feeds": b"\x0ca = 0\n\x0c\ndef f():\n    %s\n  \x0c\n\x0c# end\n",
    "form feed just above": b"if a:\n  \x0c\n  %s\n",
    "latin-1": b"# coding: latin-1\na = '\xe9'\n%s\n# \xfc\n",
    "continuation": b"a = \\\n   0\n%s\n",
    "semicolons": b"a = 0 ;b = 2;\n%s\n",
    "vertical tab in a string": b"a = '\x0b \x1c'\n%s\n",
    "unicode line separator": "a = '\u2028'\n%s\n".encode(),
    "trailing comments": b"%s\n    # indented comment\n# end",
}


@pytest.mark.parametrize("frame", EXACT.values(), ids=EXACT)
def test_everything_outside_of_the_edit_stays_byte_for_byte(frame):
    data = frame % b"foo = 1"
    text = decode(data)
    before = cst.parse_module(text.text)
    after = edits.apply(before, [replacing(before, {"1": cst.Name("bar")})]).module
    assert edits.render(text, before, after) == frame % b"foo = bar"


def test_a_line_that_libcst_cannot_reproduce_is_not_edited():
    data = b"\x0cfoo = 1\n"
    text = decode(data)
    before = cst.parse_module(text.text)
    assert before.code != text.text
    after = edits.apply(before, [replacing(before, {"1": cst.Name("bar")})]).module
    with pytest.raises(
        NotWritableError, match="LibCST does not reproduce the code at line 1 exactly"
    ):
        edits.render(text, before, after)


def test_characters_that_the_encoding_lacks_are_refused():
    data = b"# coding: ascii\nfoo = 1\n"
    text = decode(data)
    before = cst.parse_module(text.text)
    after = edits.apply(before, [replacing(before, {"1": cst.SimpleString("'ü'")})]).module
    with pytest.raises(NotWritableError, match="characters that ascii cannot hold"):
        edits.render(text, before, after)
