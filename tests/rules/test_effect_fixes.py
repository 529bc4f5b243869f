"""Rewrites of effects and of calls that a compiler cannot follow, without a compiler."""

import textwrap

import pytest

from jitlint import engine, fixing
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.rule import load_rules
from jitlint.source import read

HEADER = "import contextlib\nimport copy\n\nimport torch\nfrom torch import nn\n\n\n"
RULES = ("trace-side-effect", "trace-unsupported-call")


def planned(tmp_path, source):
    path = tmp_path / "module.py"
    path.write_text(HEADER + textwrap.dedent(source).lstrip("\n"))
    settings = Settings(cache=False, select=RULES, unsafe=True, verify=False)
    found = fixing.plan([read(path)], settings, load_rules())
    assert not found.problems
    return found


def rewritten(tmp_path, source):
    (file,) = planned(tmp_path, source).files
    return file.new.decode().removeprefix(HEADER)


def reported(tmp_path, source):
    path = tmp_path / "module.py"
    path.write_text(HEADER + textwrap.dedent(source).lstrip("\n"))
    found = engine.check([path], Settings(cache=False, select=RULES), load_rules())
    assert not found.problems
    return found.diagnostics


def compiled(body):
    return "@torch.compile\ndef f(x, n: int, name: str):\n" + textwrap.indent(
        textwrap.dedent(body).strip("\n"), "    "
    )


PRINTED = {
    "text": ('print("a")', 'torch._higher_order_ops.print("a")'),
    "braces": ('print("{a}", n)', 'torch._higher_order_ops.print("{{a}} {}", n)'),
    "quotes": ("print('say \"a\"')", "torch._higher_order_ops.print('say \"a\"')"),
    "lines": (r'print("a\n")', r'torch._higher_order_ops.print("a\n")'),
    "separator": (
        'print("a", n, sep=", ")',
        'torch._higher_order_ops.print("a, {}", n)',
    ),
    "size": ("print(x.shape[0])", 'torch._higher_order_ops.print("{}", x.shape[0])'),
    "dtype": ("print(x.dtype)", 'torch._higher_order_ops.print("{}", x.dtype)'),
    "tensor": ("print(x.detach())", 'torch._higher_order_ops.print("{!s}", x.detach())'),
    "f-string": (
        'print(f"{name!r:>8} of {x.size(1)} at {x.sum():.3f}")',
        'torch._higher_order_ops.print("{!r:>8} of {} at {:.3f}", name, x.size(1), x.sum())',
    ),
    "raw f-string": (r'print(rf"\d{n}")', r'torch._higher_order_ops.print("\\d{}", n)'),
}


@pytest.mark.parametrize("case", PRINTED)
def test_a_print_becomes_the_operator_that_prints(case, tmp_path):
    before, after = PRINTED[case]
    assert rewritten(tmp_path, compiled(before)) == compiled(after)


def test_the_operator_is_spelled_as_the_file_spells_torch(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import torch as th\n\n\n@th.compile\ndef f(x):\n    print('a')\n    return x\n"
    )
    settings = Settings(cache=False, select=RULES, unsafe=True, verify=False)
    (file,) = fixing.plan([read(path)], settings, load_rules()).files
    assert b'th._higher_order_ops.print("a")' in file.new


PRINTS = {
    "print(n, x.shape[0])": False,
    "print(x.detach())": False,
    "print(x)": True,
    'print(f"{x.mean()}")': True,
}


@pytest.mark.parametrize(("code", "has_gradient"), PRINTS.items())
def test_a_print_is_never_safe_and_says_what_it_rests_on(code, has_gradient, tmp_path):
    (found,) = reported(tmp_path, compiled(code))
    assert found.fix_safety is Safety.UNSAFE
    assert "no caller maps over it (torch.vmap)" in (found.fix_title or "")
    assert ("no gradient goes through" in (found.fix_title or "")) is has_gradient


LEFT = {
    "empty line": ("print()", "prints no empty line"),
    "a file": ('print("a", x.detach(), file=stream)', "takes no `file=stream`"),
    "a list": ("print([n, x])", "may be something else"),
    "torch.Size": ("print(x.shape)", "may be something else"),
    "a number that is read": ("print(x.sum().item())", "print the tensor itself"),
    "f-string with =": ('print(f"{x=}")', "with `=` is not a format"),
    "a format that varies": ('print(f"{x.sum():{n}}")', "the format depends on a value"),
}


@pytest.mark.parametrize("case", LEFT)
def test_other_prints_are_left_with_a_reason(case, tmp_path):
    code, why = LEFT[case]
    # exported code gets no operators of its own
    source = f"""
    class Net(nn.Module):
        def forward(self, x, stream, n):
            {code}
            return x * 2

    program = torch.export.export(Net(), (torch.ones(2), None, 2))
    """
    found = [each for each in reported(tmp_path, source) if each.rule == RULES[0]]
    assert why in found[0].no_fix_reason


REWRITTEN = {
    "pow of sums": ("y = pow(x + 1, -n)", "y = (x + 1) ** (-n)"),
    "pow in a product": ("y = 2 * pow(x, 2)", "y = 2 * (x**2)"),
    "pow as an argument": ("y = abs(pow(x, 2))", "y = abs(x**2)"),
    "method of a pow": ("y = pow(x, 2).sum()", "y = (x**2).sum()"),
    "deepcopy": ("y = copy.deepcopy(x > 0)", "y = (x > 0).clone()"),
    "copy": ("y = copy.copy(x.detach())", "y = x.detach().detach()"),
    "device": (
        """
        with torch.device("cpu"):
            y = torch.ones(n)  # ones
            z = torch.zeros(n, device="cpu") + y.sum()
        """,
        """
        y = torch.ones(n, device="cpu")  # ones
        z = torch.zeros(n, device="cpu") + y.sum()
        """,
    ),
    "stack": (
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.autocast("cpu"))
            y = x + 1
        """,
        """
        with torch.no_grad(), torch.autocast("cpu"):
            y = x + 1
        """,
    ),
    "flag": (
        """
        y = x[:, None]
        if n:
            y.requires_grad = True
        return y * 2
        """,
        """
        y = x[:, None]
        if n and not torch.compiler.is_compiling():
            y.requires_grad = True
        return y * 2
        """,
    ),
    "flag among others": (
        """
        y = torch.zeros(3)
        if n or name:
            y.requires_grad = True
            n = 2
        return x + y
        """,
        """
        y = torch.zeros(3)
        if n or name:
            if not torch.compiler.is_compiling():
                y.requires_grad = True
            n = 2
        return x + y
        """,
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_calls_get_a_form_that_a_graph_takes(case, tmp_path):
    before, after = REWRITTEN[case]
    assert rewritten(tmp_path, compiled(before)) == compiled(after)


WITHHELD = {
    "pow with a modulus": ("y = pow(x, 2, None)", "has no operator"),
    "deepcopy with a memo": ("y = copy.deepcopy(x, {})", "more than the tensor"),
    "device of an unknown call": (
        """
        with torch.device("cpu"):
            y = made(n)
        """,
        "`made(n)` may make tensors",
    ),
    "device that may be None": (
        """
        with torch.device("cpu"):
            y = torch.ones(3, device=n)
        """,
        "may be None, which asks the block",
    ),
    "device in keywords": (
        """
        with torch.device("cpu"):
            y = torch.ones(3, **n)
        """,
        "may be given a device",
    ),
    "device of a function that makes a tensor inside": (
        """
        with torch.device("cpu"):
            y = torch.signal.windows.hann(4)
        """,
        "may make tensors on the device of the block",
    ),
    "device that changes": (
        """
        with torch.device(name):
            name = "meta"
            y = torch.ones(n)
        """,
        "another one after the first statements",
    ),
    "stack that is entered later": (
        """
        with contextlib.ExitStack() as stack:
            if n:
                stack.enter_context(torch.no_grad())
            y = x + 1
        """,
        "nothing enters the stack at once",
    ),
    "what entering gives": (
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            mode = stack.enter_context(torch.autocast("cpu"))
            y = x + 1
        """,
        "used for more than to enter",
    ),
    "stack that is used otherwise": (
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.callback(abs, 1)
            y = x + 1
        """,
        "used for more than to enter",
    ),
    "flag of an argument": ("x.requires_grad = True\ny = x * 2", "not known to be a new tensor"),
    "flag of a view that may be its base": (
        "y = x.reshape(-1)\ny.requires_grad = True",
        "not known to be a new tensor",
    ),
    "flag of a result": ("y = x * 2\ny.requires_grad = True", "`return y` goes on"),
    "flag of a tensor that autograd is asked for": (
        "z = x * 2\nz.requires_grad = True\ny = z.grad",
        "`z.grad` goes on",
    ),
    "flag of a tensor with two names": (
        "z = x * 2\nz.requires_grad = True\ny = z",
        "`z` goes on",
    ),
    "flag that may be off": ("z = x * 2\nz.requires_grad = n\ny = z + 1", "sets this attribute"),
}


@pytest.mark.parametrize("case", WITHHELD)
def test_what_may_differ_is_left_with_a_reason(case, tmp_path):
    code, why = WITHHELD[case]
    source = "def made(n):\n    return torch.ones(n)\n\n\n" + compiled(code) + "\n    return y\n"
    reasons = [each.no_fix_reason or "" for each in reported(tmp_path, source)]
    assert any(why in reason for reason in reasons), reasons


def test_a_change_of_a_tensor_is_not_hidden_in_an_operator(tmp_path):
    source = compiled("w = x * 2\nw.retain_grad()\nreturn w")
    assert [each.fix_safety for each in reported(tmp_path, source)] == [None]
