"""Code that becomes an operator with an effect, and what keeps it from that."""

import pytest

HEAD = """
import warnings
from typing import Literal, Optional

from torch import Tensor

"""

OPERATORS = {
    "a whole number of a float stays whole": (
        """
def check(x: Tensor, limit: float) -> None:
    if x.max() > limit:
        raise ValueError(f"above {limit}")


@torch.compile
def f(x):
    check(x, 3)
    return x * 2
""",
        ["limit: torch.types.Number"],
    ),
    "what only some of the calls tell the types of": (
        """
class Attention(nn.Module):
    def forward(self, hidden, shapes=None):
        batch, length, _ = hidden.shape
        if (shapes[:, 0] * shapes[:, 1]).sum() != length:
            raise ValueError("the shapes do not fit")
        return hidden * 2


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x: Tensor, shapes: Tensor):
        return self.attention(x, shapes)


attention, model = torch.compile(Attention()), torch.compile(Model())
""",
        (
            "def _check_attention_forward(shapes: Tensor, length: int) -> None:",
            "        _check_attention_forward(shapes, length)\n",
        ),
    ),
    "a function whose name is another one without its underscore": (
        """
def _check(x: Tensor, n: int) -> None:
    if x.max() > n:
        raise ValueError("above")


def check(x: Tensor, n: int) -> None:
    if x.max() > n:
        raise ValueError("beyond")


@torch.compile
def f(x):
    _check(x, 3)
    check(x, 4)
    return x * 2
""",
        ('custom_op("module::_check"', 'custom_op("module::check"'),
    ),
    "methods of one name in two classes": (
        """
class A(nn.Module):
    def forward(self, x):
        if x.max() > 3:
            raise ValueError("a")
        return x * 2


class LongName(nn.Module):
    def forward(self, x):
        if x.max() > 4:
            raise ValueError("b")
        return x * 2


a, b = torch.compile(A()), torch.compile(LongName())
""",
        ("module::check_a_forward", "module::check_long_name_forward"),
    ),
    "a text of several lines": (
        """
@torch.compile
def f(x, mode: Literal["mean", "sum"] = "mean"):
    if x.max() > 3:
        raise ValueError(
            "above the largest "
            f"of {mode}",
        )
    return x * 2
""",
        (
            "        raise ValueError(message)\n",
            """
    _check_f(
        "above the largest "
        f"of {mode}",
        x,
    )
""",
        ),
    ),
    "two checks in one function": (
        """
@torch.compile
def f(x):
    if x.max() > 3:
        raise ValueError("a")
    if x.min() < -3:
        raise ValueError("b")
    return x * 2
""",
        ("module::check_f", "module::check_f_2"),
    ),
    "a module where `_` is something else": (
        """
from gettext import gettext as _


@torch.compile
def f(x):
    if x.max() > 3:
        raise ValueError(_("large"))
    return x * 2
""",
        ("def _fake_check_f(x) -> None:",),
    ),
    "a text of sizes, which may be symbols": (
        """
@torch.compile
def f(x, n: int):
    if x.max() > 3:
        raise ValueError(f"large: {n} of {x.shape[0]} in {x.dtype}")
    return x * 2
""",
        ("def _check_f(x: Tensor, n: int) -> None:", 'f"large: {n} of {x.shape[0]} in {x.dtype}"'),
    ),
    "a text of what cannot vary": (
        """
@torch.compile
def f(x, mode: str = "mean"):
    if x.max() > 3:
        raise ValueError(f"large in {x.dtype}")
    return x * 2
""",
        ("def _check_f(message: str, x: Tensor) -> None:", '_check_f(f"large in {x.dtype}", x)'),
    ),
    "a text of what the module was made with": (
        """
class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x):
        window = max(self.config.windows)
        if x.max() > 3:
            raise ValueError(f"large in {window}")
        return x * 2


net = torch.compile(Net(object()))
""",
        ('_check_net_forward(f"large in {window}", x)', "def _check_net_forward(message: str"),
    ),
    "a text of a float, which may be a whole number": (
        """
@torch.compile
def f(x, power: float = 2.0):
    if x.max() > power:
        raise ValueError(f"beyond {power}")
    return x * 2
""",
        ('_check_f(f"beyond {power}", x, power)',),
    ),
    "a text of several that may be chosen": (
        """
@torch.compile
def f(x, mode: Literal["mean", "sum"] = "mean"):
    if x.max() > 3:
        modes = [mode]
        raise ValueError(modes)
    return x * 2
""",
        ("def _check_f(x: Tensor, mode: str) -> None:",),
    ),
}


@pytest.mark.parametrize(("source", "parts"), OPERATORS.values(), ids=OPERATORS)
def test_an_operator_has_a_name_and_arguments_of_its_own(source, parts, rewrite):
    new = rewrite(HEAD + source)
    assert [part for part in parts if part not in new] == []


REST = {
    "an else": (
        """
@torch.compile
def f(x):
    if x.max() > 3:
        raise ValueError("large")
    else:
        y = x * 2
    return y
""",
        "    _check_f(x)\n    y = x * 2\n    return y\n",
    ),
    "an elif": (
        """
@torch.compile
def f(x, flag: bool = True):
    if x.max() > 3:
        raise ValueError("large")
    elif flag:
        return x * 2
    return x * 3
""",
        "    _check_f(x)\n    if flag:\n        return x * 2\n    return x * 3\n",
    ),
}


@pytest.mark.parametrize(("source", "part"), REST.values(), ids=REST)
def test_what_goes_on_stands_behind_the_check(source, part, rewrite):
    new = rewrite(HEAD + source)
    assert "custom_op" in new
    assert part in new


KEPT = {
    "it asks for gradients": (
        """
@torch.compile
def f(x):
    if x.requires_grad and x.max() > 3:
        raise ValueError("large")
    return x * 2
"""
    ),
    "it asks for a mode": (
        """
@torch.compile
def f(x):
    if x.max() > 3 and torch.is_grad_enabled():
        raise ValueError("large")
    return x * 2
"""
    ),
    "it multiplies matrices": (
        """
@torch.compile
def f(x):
    if (x @ x).isnan().any():
        raise ValueError("large")
    return x * 2
"""
    ),
    "it reads what may have no value": (
        """
@torch.compile
def f(x, flag: bool):
    if flag:
        top = x.max()
    if flag and x.max() > 3:
        raise ValueError(f"{top}")
    return x * 2
"""
    ),
    "the function is defined twice": (
        """
if torch.__version__ > "2":
    @torch.compile
    def f(x):
        if x.max() > 3:
            raise ValueError("large")
        return x * 2
else:
    @torch.compile
    def f(x):
        if x.max() > 4:
            raise ValueError("larger")
        return x * 2
"""
    ),
    "the code stands in a try": (
        """
@torch.compile
def f(x):
    try:
        if x.max() > 3:
            raise ValueError("large")
    except ValueError:
        x = x * 3
    return x * 2
"""
    ),
    "it writes into its argument": (
        """
def check(x: Tensor) -> None:
    if x.max() > 3:
        x.zero_()
        warnings.warn("large")


@torch.compile
def f(x):
    check(x)
    return x * 2
"""
    ),
    "its text is of something that nothing is known of": (
        """
from elsewhere import chosen


class Net(nn.Module):
    def forward(self, x):
        window = chosen(self.size)
        if x.max() > 3:
            raise ValueError(f"large in {window}")
        return x * 2


net = torch.compile(Net())
"""
    ),
    "a function of the project may write": (
        """
def clear(x):
    x[0] = 0


def check(x: Tensor) -> None:
    if x.max() > 3:
        clear(x)
        warnings.warn("large")


@torch.compile
def f(x):
    check(x)
    return x * 2
"""
    ),
}


KEPT |= {
    "a warning names a caller": """
@torch.compile
def f(x):
    if x.max() > 3:
        warnings.warn("large", UserWarning, stacklevel=2)
    return x * 2
""",
    "a helper's warning names a caller": """
def deprecated(name: str):
    warnings.warn(f"{name} is old", FutureWarning, 3)


@torch.compile
def f(x):
    if x.max() > 3:
        deprecated("f")
    return x * 2
""",
    "a helper asks for a mode": """
def is_eager():
    return not torch.compiler.is_compiling()


@torch.compile
def f(x):
    if is_eager() and x.max() > 3:
        raise ValueError("large")
    return x * 2
""",
    "it asks for a type": """
@torch.compile
def f(x: Tensor, size: int):
    if not isinstance(size, int) or x.max() > size:
        raise ValueError("large")
    return x * 2
""",
    "TorchScript takes the function too": """
@torch.compile
def f(x):
    if x.max() > 3:
        warnings.warn("large")
    return x * 2 if torch.jit.is_scripting() else x * 3
""",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_what_an_operator_would_change_stays(source, rewrite):
    assert "custom_op" not in rewrite(HEAD + source)


def test_a_text_of_a_size_and_a_float_names_its_condition(plan):
    source = """
@torch.compile
def f(x, limit: float = 2.0):
    if x.max() > limit:
        raise ValueError(f"{x.shape[0]} beyond {limit}")
    return x * 2
"""
    (file,) = plan(source).files
    assert "`limit` is no whole number" in (file.applied[0].fix_title or "")


def test_a_function_that_is_handed_on_stays_a_function(rewrite):
    new = rewrite(
        HEAD
        + """
def check(x: Tensor) -> None:
    if x.max() > 3:
        raise ValueError("large")


def every(xs):
    return list(map(check, xs))


@torch.compile
def f(x):
    check(x)
    return x * 2
"""
    )
    assert "def check(x: Tensor) -> None:\n    _check_check(x)" in new


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("validate", "def validate(x: Tensor) -> None:\n"),
        ("_validate", '@torch.library.custom_op("module::validate", mutates_args=())\n'),
    ],
)
def test_a_public_function_keeps_its_page(name, line, rewrite):
    source = f"""
def {name}(x: Tensor) -> None:
    \"\"\"Raises ValueError where a value is large.\"\"\"
    if x.max() > 3:
        raise ValueError("large")


@torch.compile
def f(x):
    {name}(x)
    return x * 2
"""
    assert line in rewrite(HEAD + source)
