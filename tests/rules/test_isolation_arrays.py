"""Functions that fill an array with what NumPy draws: which of them become operators."""

import pytest

HEAD = """
import numpy as np
from torch import Tensor

"""

USED = """

@torch.compile
def f(x):
    return x * torch.tensor(drawn((x.shape[0], 3), 0.5))
"""


@pytest.fixture
def rules() -> tuple[str, ...]:
    return ("trace-host-read", "trace-unsupported-call")


def module(function: str) -> str:
    return HEAD + function.strip("\n") + "\n" + USED


OPERATORS = {
    "a shape of a tuple": (
        """
def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    rows, columns = shape
    out = np.zeros((rows, columns * 2), dtype=np.float32)
    out[0] = np.random.rand(1).item() * share
    return out
""",
        (
            "def _drawn_operator(shape: list[int], share: float) -> Tensor:",
            "torch.from_numpy(_drawn_in_python(tuple(shape), share))",
            "    rows, columns = shape\n"
            "    return torch.empty((rows, columns * 2), dtype=torch.float32)\n",
            "    return _drawn_operator(shape, share).numpy()\n",
        ),
    ),
    "a shape as it is given": (
        '''
def drawn(shape: tuple[int, ...], share: float, *, at: int = 0) -> np.ndarray:
    """Drawn."""
    out = np.ones(shape)
    out[at] = np.random.rand(1).item() * share
    return out
''',
        (
            "def _drawn_operator(shape: list[int], share: float, *, at: int = 0) -> Tensor:",
            "_drawn_in_python(tuple(shape), share, at=at)",
            "    return torch.empty(shape, dtype=torch.float64)\n",
            '    """Drawn."""\n    return _drawn_operator(shape, share, at=at).numpy()\n',
        ),
    ),
}


@pytest.mark.parametrize(("function", "parts"), OPERATORS.values(), ids=OPERATORS)
def test_an_array_of_plain_shape_comes_from_an_operator(function, parts, rewrite):
    new = rewrite(module(function))
    assert [part for part in parts if part not in new] == []


KEPT = {
    "its shape depends on what is drawn": """
def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    number = int(np.random.rand(1).item() * 3) + 1
    out = np.zeros((number, 3))
    return out
""",
    "it is assigned again": """
def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    out = out[:1]
    return out
""",
    "it gets another shape in place": """
def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    out.resize((1, 3))
    return out
""",
    "it has another name at one return": """
def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    out = np.zeros(shape)
    other = np.ones((1, 3))
    if np.random.rand(1).item() > share:
        return other
    return out
""",
    "its dtype is not plain": """
def drawn(shape: tuple[int, int], share: float, kind: str = "f4") -> np.ndarray:
    out = np.zeros(shape, dtype=kind)
    out[0] = np.random.rand(1).item()
    return out
""",
    "an argument is an array": """
def drawn(shape: tuple[int, int], share: float, old: np.ndarray | None = None) -> np.ndarray:
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    return out
""",
    "a tensor may be written into": """
def drawn(shape: tuple[int, int], share: float, old: Tensor | None = None) -> np.ndarray:
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    if old is not None:
        old.zero_()
    return out
""",
    "a tensor is given to somebody": """
def drawn(shape: tuple[int, int], share: float, old: Tensor | None = None) -> np.ndarray:
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    print(old)
    return out
""",
    "it sets a global": """
count = 0


def drawn(shape: tuple[int, int], share: float) -> np.ndarray:
    global count
    count += 1
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    return out
""",
    "it is not said to be an array": """
def drawn(shape: tuple[int, int], share: float):
    out = np.zeros(shape)
    out[0] = np.random.rand(1).item()
    return out
""",
}


@pytest.mark.parametrize("function", KEPT.values(), ids=KEPT)
def test_another_array_stays(function, rewrite):
    assert "custom_op" not in rewrite(module(function))
