"""Arguments made up for functions of which nothing is known but how many they take.

They are written as source text and evaluated anew for each call, so that no call sees what
another one did to them. Only the arguments are written here; which of them a function
accepts, and what it does then, is seen by calling it.
"""

import builtins
import importlib
import inspect
import io
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jitlint.time_limit import time_limit

PLAIN = (
    "'string'",
    "2",
    "[3, 1, 2]",
    "0.5",
    "'1'",
    "b'abcd'",
    "file",
    "function",
    "{'a': 1}",
    "None",
    "int",
    "(1, 2)",
    "True",
    "thing",
    "stream",
    "folder",
    "module",
    "iter([3, 1, 2])",
)
FEW = ("'string'", "2", "[3, 1, 2]", "0.5", "'1'", "b'abcd'", "function", "file", "None")
TENSORS = ("scalar", "integer", "vector", "matrix")
BESIDE = ("2", "'string'", "[3, 1, 2]", "function")
"""What stands beside a tensor."""
INSIDE = ("[scalar, other]", "[vector, vector]")
HOLDING = ("record_of_tensor", "layer")
MODULES = ("layer", "activation")
"""Modules with parameters, and without."""
TORCH = ("matrix", "layer", "weight", "[weight]", "leaf.sum()", "vector", "'cpu'", "torch.float32")
"""What functions of torch are given, before anything plain."""
WRITTEN: dict[str, tuple[str, ...]] = {
    "builtins.next": ("iter([3, 1, 2])",),
    "builtins.getattr": ("thing, 'value'",),
    "builtins.setattr": ("thing, 'value', 2",),
    "builtins.delattr": ("thing, 'value'",),
    "builtins.hasattr": ("thing, 'value'",),
    "builtins.compile": ("'1 + 1', 'string', 'eval'",),
    "builtins.isinstance": ("2, int",),
    "builtins.issubclass": ("bool, int",),
    "builtins.vars": ("thing",),
    "builtins.__import__": ("'string'",),
    "builtins.zip": ("[3, 1, 2], [1, 2]",),
    "builtins.map": ("function, [3, 1, 2]",),
    "array.array": ("'f', [0.5, 2.0]",),
    "asyncio.run": ("coroutine()",),
    "bisect.bisect": ("[1, 2, 3], 2",),
    "bisect.bisect_left": ("[1, 2, 3], 2",),
    "bisect.bisect_right": ("[1, 2, 3], 2",),
    "bisect.insort": ("[1, 2, 3], 2",),
    "bisect.insort_left": ("[1, 2, 3], 2",),
    "bisect.insort_right": ("[1, 2, 3], 2",),
    "bz2.decompress": ("bz2.compress(b'abcd')",),
    "concurrent.futures.wait": ("[concurrent.futures.Future()], 0",),
    "contextvars.copy_context": ("",),
    "csv.writer": ("stream",),
    "csv.DictReader": ("stream",),
    "csv.DictWriter": ("stream, ['a']",),
    "ctypes.byref": ("ctypes.c_int(2)",),
    "ctypes.sizeof": ("ctypes.c_int(2)",),
    "ctypes.pointer": ("ctypes.c_int(2)",),
    "ctypes.addressof": ("ctypes.c_int(2)",),
    "dataclasses.asdict": ("record",),
    "dataclasses.astuple": ("record",),
    "dataclasses.fields": ("record",),
    "dataclasses.replace": ("record",),
    "dataclasses.make_dataclass": ("'Name', ['a']",),
    "datetime.datetime.fromisoformat": ("'2020-01-01'",),
    "datetime.date.fromisoformat": ("'2020-01-01'",),
    "datetime.datetime.strptime": ("'2020', '%Y'",),
    "enum.Enum": ("'Name', ['A']",),
    "fractions.Fraction": ("1, 2", "'1/2'"),
    "functools.reduce": ("function, [3, 1, 2]",),
    "functools.singledispatch": ("function",),
    "gzip.decompress": ("gzip.compress(b'abcd')",),
    "hashlib.new": ("'sha256', b'abcd'",),
    "hmac.new": ("b'abcd', b'abcd', 'sha256'",),
    "hmac.digest": ("b'abcd', b'abcd', 'sha256'",),
    "hashlib.pbkdf2_hmac": ("'sha256', b'abcd', b'abcd', 1",),
    "heapq.merge": ("[1, 2], [3]",),
    "heapq.nlargest": ("2, [3, 1, 2]",),
    "heapq.nsmallest": ("2, [3, 1, 2]",),
    "importlib.util.find_spec": ("'string'",),
    "importlib.metadata.version": ("'torch'",),
    "importlib.metadata.distribution": ("'torch'",),
    "inspect.signature": ("function",),
    "io.BytesIO": ("b'abcd'",),
    "io.TextIOWrapper": ("io.BytesIO(b'abcd')",),
    "json.dump": ("[3, 1, 2], stream",),
    "json.load": ("stream",),
    "lzma.decompress": ("lzma.compress(b'abcd')",),
    "logging.getLogger": ("'string'",),
    "multiprocessing.get_context": ("'spawn'",),
    "operator.attrgetter": ("'value'",),
    "operator.itemgetter": ("1",),
    "operator.methodcaller": ("'index', 1",),
    "pickle.dump": ("[3, 1, 2], io.BytesIO()",),
    "pickle.load": ("io.BytesIO(pickle.dumps([3, 1, 2]))",),
    "pickle.loads": ("pickle.dumps([3, 1, 2])",),
    "queue.Queue": ("",),
    "builtins.open": ("file",),
    "io.open": ("file",),
    "random.randint": ("1, 600",),
    "random.choices": ("[3, 1, 2]",),
    "random.randrange": ("500", "1, 500"),
    "random.sample": ("[3, 1, 2], 2",),
    "re.sub": ("'s', 't', 'string'",),
    "re.subn": ("'s', 't', 'string'",),
    "shutil.copyfileobj": ("stream, stream",),
    "struct.Struct": ("'i'",),
    "struct.calcsize": ("'i'",),
    "struct.pack": ("'i', 2",),
    "struct.unpack": ("'i', b'abcd'",),
    "struct.unpack_from": ("'i', b'abcd'",),
    "struct.iter_unpack": ("'i', b'abcd'",),
    "struct.pack_into": ("'i', bytearray(8), 0, 2",),
    "tempfile.NamedTemporaryFile": ("",),
    "tempfile.TemporaryFile": ("",),
    "tempfile.TemporaryDirectory": ("",),
    "threading.Thread": ("",),
    "threading.Timer": ("2, function",),
    "textwrap.shorten": ("'string', 20",),
    "time.mktime": ("time.localtime()",),
    "timeit.timeit": ("function, number=1",),
    "timeit.repeat": ("function, number=1, repeat=1",),
    "tokenize.generate_tokens": ("stream.readline",),
    "typing.NamedTuple": ("'Name', [('a', int)]",),
    "typing.TypedDict": ("'Name', {'a': int}",),
    "unicodedata.normalize": ("'NFC', 'string'",),
    "uuid.UUID": ("'12345678123456781234567812345678'",),
    "uuid.uuid3": ("uuid.NAMESPACE_DNS, 'string'",),
    "uuid.uuid5": ("uuid.NAMESPACE_DNS, 'string'",),
    "warnings.filterwarnings": ("'ignore'",),
    "warnings.simplefilter": ("'ignore'",),
    "warnings.warn_explicit": ("'string', UserWarning, 'string', 2",),
    "weakref.ref": ("thing",),
    "weakref.proxy": ("thing",),
    "weakref.finalize": ("thing, function",),
    "zlib.decompress": ("zlib.compress(b'abcd')",),
    "builtins.str.format": ("2",),
    "builtins.str.join": ("['a', 'b']",),
    "builtins.str.translate": ("{97: 98}",),
    "builtins.list.sort": ("",),
    "torch.autograd.Function.apply": ("matrix",),
    "torch.nn.Module.register_buffer": ("'name', vector",),
    "torch.nn.Module.register_parameter": ("'name', weight",),
    "torch.nn.Module.register_module": ("'name', layer",),
    "torch.nn.Module.add_module": ("'name', layer",),
    "torch.nn.Module.load_state_dict": ("layer.state_dict()",),
    "torch.nn.Module.to": ("'cpu'", "torch.float32"),
    "torch.nn.Module.get_parameter": ("'weight'",),
    "torch.nn.Module.get_submodule": ("''",),
    "torch.nn.Module.register_forward_hook": ("function",),
    "torch.nn.GRU": ("2, 2",),
    "torch.nn.LSTM": ("2, 2",),
    "torch.nn.RNN": ("2, 2",),
    "torch.nn.utils.clip_grad_norm_": ("[weight], 1.0",),
    "torch.nn.utils.clip_grad_value_": ("[weight], 1.0",),
    "torch.nn.utils.rnn.pack_padded_sequence": ("matrix, [3, 2, 1]",),
    "torch.nn.utils.rnn.pad_packed_sequence": ("packed",),
    "torch.nn.utils.rnn.unpack_sequence": ("packed",),
    "torch.nn.utils.clip_grads_with_norm_": ("[weight], 1.0, scalar",),
    "torch.nn.utils.parameters_to_vector": ("[weight]",),
    "torch.nn.utils.vector_to_parameters": ("weight.flatten().detach(), [weight]",),
    "torch.Generator.manual_seed": ("2",),
    "torch.save": ("vector, io.BytesIO()",),
    "torch.load": ("saved",),
    "torch.jit.script": ("layer",),
    "torch.jit.trace": ("function_of_one, vector",),
    "torch.utils.checkpoint.checkpoint": ("function_of_one, vector, use_reentrant=False",),
    "torch.utils.checkpoint.checkpoint_sequential": ("[layer], 1, matrix, use_reentrant=False",),
}
"""Arguments of functions that accept nothing made up, by full name."""
ENOUGH = 12
"""Working calls after which no more are looked for."""
TRIALS = 450
SECONDS_PER_CALL = 1.0
SECONDS_PER_SEARCH = 15.0
SECONDS_TO_COMPILE = 40.0


def evaluate(text: str) -> tuple[Any, ...]:
    """The arguments written as `text`."""
    values: tuple[Any, ...] = eval(f"collect({text})", {}, _Names())
    return values


class _Names(dict[str, Any]):
    """What may stand in arguments; each thing is made when it is asked for."""

    def __missing__(self, name: str) -> Any:
        if name in THINGS:
            self[name] = THINGS[name]()
            return self[name]
        if hasattr(builtins, name):
            raise KeyError(name)
        return importlib.import_module(name)


def _file() -> str:
    path = Path("file.txt")
    path.write_text("1\n", encoding="utf-8")
    return str(path)


def _folder() -> str:
    Path("folder").mkdir(exist_ok=True)
    return "folder"


def _thing() -> Any:
    class Thing:
        def __init__(self) -> None:
            self.value = 1

    return Thing()


def _record() -> Any:
    import dataclasses

    return dataclasses.make_dataclass("Record", [("a", int)])(1)


def _record_of_tensor() -> Any:
    import dataclasses

    return dataclasses.make_dataclass("Record", [("a", Any)])(_tensor([0.5, 1.0, 0.25])())


def _tensor(values: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch

        return torch.tensor(values)

    return make


def _leaf() -> Any:
    return _tensor([1.0, 2.0, 3.0])().requires_grad_()


def _layer() -> Any:
    import torch

    layer = torch.nn.Linear(3, 3)
    layer.load_state_dict({"weight": torch.full((3, 3), 0.5), "bias": torch.ones(3)})
    return layer


def _activation() -> Any:
    import torch

    return torch.nn.ReLU()


def _weight() -> Any:
    weight = _layer().weight
    weight.grad = weight.detach().clone()
    return weight


def _operation() -> Any:
    import torch

    class Operation(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    return Operation


def _saved() -> Any:
    import torch

    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer)
    buffer.seek(0)
    return buffer


def _packed() -> Any:
    import torch

    return torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)])


def _coroutine() -> Any:
    async def nothing() -> int:
        return 1

    return nothing


THINGS: dict[str, Callable[[], Any]] = {
    "collect": lambda: lambda *args, **kwargs: (args, kwargs),
    "function": lambda: lambda *args: 0,
    "function_of_one": lambda: lambda x: x + 1,
    "coroutine": _coroutine,
    "file": _file,
    "folder": _folder,
    "thing": _thing,
    "record": _record,
    "record_of_tensor": _record_of_tensor,
    "stream": lambda: io.StringIO("1\n"),
    "module": lambda: __import__("string"),
    "scalar": _tensor(0.5),
    "other": _tensor(0.75),
    "integer": _tensor(2),
    "vector": _tensor([0.5, 1.0, 0.25]),
    "matrix": _tensor([[0.5, 1.0, 0.25], [0.5, 2.0, 0.75], [1.0, 0.5, 3.0]]),
    "leaf": _leaf,
    "layer": _layer,
    "activation": _activation,
    "weight": _weight,
    "operation": _operation,
    "packed": _packed,
    "saved": _saved,
}


def plain_calls(name: str, function: Any, *, of_torch: bool = False) -> Iterator[str]:
    """Argument texts to try, the likeliest first."""
    yield from WRITTEN.get(name, ())
    first = (*TORCH, *PLAIN) if of_torch else PLAIN
    few = (*TORCH[:4], *FEW) if of_torch else FEW
    for count in _counts(function):
        pool = first if count < 3 else few if count == 3 else few[:4]
        if count > 2:
            yield from (", ".join([token] * count) for token in first)
        for tokens in itertools.product(pool, repeat=count):
            yield ", ".join(tokens)


def tensor_calls(name: str, function: Any) -> Iterator[str]:
    """Argument texts with a tensor among the arguments."""
    yield from TENSORS
    for pair in itertools.product((*TENSORS, *BESIDE), repeat=2):
        if set(pair) & set(TENSORS):
            yield ", ".join(pair)


def inside_calls(name: str, function: Any) -> Iterator[str]:
    """Argument texts with a list of tensors."""
    yield from INSIDE
    for beside, inside in itertools.product(BESIDE, INSIDE):
        yield f"{inside}, {beside}"
        yield f"{beside}, {inside}"


def holding_calls(name: str, function: Any) -> Iterator[str]:
    """Argument texts with an object that has tensors."""
    yield from HOLDING


def module_calls(name: str, function: Any) -> Iterator[str]:
    """Argument texts with a module."""
    yield from MODULES


def _counts(function: Any) -> list[int]:
    """The numbers of arguments to try: what the signature requires, and one more."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [0, 1, 2, 3]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    more = len(positional) > required or any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return [required, required + 1] if more else [required]


def working(texts: Iterator[str], call: Callable[[str], Any], enough: int = ENOUGH) -> list[str]:
    """The texts with which `call` does not raise, nor block."""
    found: list[str] = []
    deadline = time.monotonic() + SECONDS_PER_SEARCH
    for text in dict.fromkeys(itertools.islice(texts, TRIALS)):
        if len(found) == enough or time.monotonic() > deadline:
            break
        try:
            with time_limit(SECONDS_PER_CALL, TimeoutError):
                call(text)
        except (Exception, SystemExit):
            continue
        found.append(text)
    return found


def spread(found: list[str], count: int) -> list[str]:
    """At most `count` of them, from the first to the last."""
    if len(found) <= count:
        return found
    return [found[(len(found) - 1) * step // (count - 1)] for step in range(count)]
