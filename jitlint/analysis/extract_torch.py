"""Extracts the table of the installed torch: `python -m jitlint.analysis.extract_torch`.

Nothing here knows what an operator does. Kinds come from running each function on the
sample inputs of torch's own test suite and on made-up arguments, else from type stubs and
annotations; whether a call breaks a graph comes from compiling it.
"""

import argparse
import io
import json
import random
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jitlint.analysis.extract_breaks import (
    DYNAMIC_SHAPE,
    measure_breaks,
    measure_breaks_of_arrays,
)
from jitlint.analysis.extract_constants import constants
from jitlint.analysis.extract_constructs import constructs
from jitlint.analysis.extract_contexts import contexts
from jitlint.analysis.extract_creations import with_creations
from jitlint.analysis.extract_effects import (
    added_methods,
    bases,
    device_constructors,
    hiding,
    hooks,
    messages,
    objects,
    requires_grad,
    self_entered,
    symbols,
    tools,
    with_effects,
    written,
)
from jitlint.analysis.extract_exports import with_exports
from jitlint.analysis.extract_inputs import with_inputs
from jitlint.analysis.extract_kinds import (
    NUMBER,
    SCALAR,
    SIZE,
    STATIC,
    TENSOR,
    TENSORS,
    kind_of,
    kind_of_annotation,
)
from jitlint.analysis.extract_modules import module_breaks, modules, with_gradients
from jitlint.analysis.extract_numbers import numbers
from jitlint.analysis.extract_numpy import arrays, folds, numpy_entry, numpy_subjects
from jitlint.analysis.extract_observations import classify_number, summarize
from jitlint.analysis.extract_refusals import with_refusals
from jitlint.analysis.extract_regions import in_processes
from jitlint.analysis.extract_registry import registry
from jitlint.analysis.extract_results import with_results
from jitlint.analysis.extract_samples import make_tensor
from jitlint.analysis.extract_skipped import skipped
from jitlint.analysis.extract_standard import other_names, standard
from jitlint.analysis.extract_stores import attribute_breaks, stores
from jitlint.analysis.extract_stubs import read_attributes
from jitlint.analysis.extract_subjects import Subject, aliases, functions, methods

SCHEMA = 1
SECTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "breaks": lambda table: breaks(table),
    "standard": lambda table: {
        "standard": standard(_described(table), declared=table["functions"].keys())
    },
    "other_names": lambda table: {"aliases": table["aliases"] | other_names(table["standard"])},
    "contexts": lambda table: {"contexts": contexts(table.get("standard", {}))},
    "written": lambda table: {"standard": table["standard"] | written() | added_methods()},
    "objects": lambda table: {"standard": table["standard"] | objects()},
    "bases": lambda table: {"bases": bases(table["standard"])},
    "self_entered": lambda table: {"self_entered": self_entered(table["standard"])},
    "effects": lambda table: {"standard": with_effects(table["standard"])},
    "results": lambda table: {"standard": with_results(table["standard"])},
    "exports": with_exports,
    "refusals": with_refusals,
    "module_breaks": lambda table: {"modules": module_breaks(table["modules"])},
    "gradients": lambda table: {"modules": with_gradients(table["modules"])},
    "arrays": lambda table: {"arrays": arrays()},
    "inputs": lambda table: {"methods": with_inputs(table["methods"])},
    "creations": lambda table: {"functions": with_creations(table["functions"])},
    "tools": lambda table: {"functions": table["functions"] | tools()},
    "hiding": lambda table: {"hiding": hiding()},
    "hooks": lambda table: {"hooks": hooks()},
    "requires_grad": lambda table: {"requires_grad": requires_grad()},
    "messages": lambda table: {"messages": messages()},
    "symbols": lambda table: {"symbols": symbols()},
    "device_constructors": lambda table: {"device_constructors": device_constructors()},
    "stores": lambda table: {"stores": stores()},
    "attribute_breaks": lambda table: {"attribute_breaks": attribute_breaks()},
    "constructs": lambda table: {"constructs": constructs()},
    "numbers": lambda table: {"numbers": numbers()},
    "graph_breaks": lambda table: {"graph_breaks": registry()},
    "skipped": lambda table: {"skipped": skipped()},
    "constants": lambda table: {"constants": constants()},
}
"""Sections that are extracted apart from the operators, from the table as far as it is known."""
AT_ONCE = 40
"""How many operators one process calls: some calls end it."""
TABLES = Path(__file__).with_name("tables")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="print the entries of these names, and stop")
    parser.add_argument("--no-compile", action="store_true", help="measure no graph breaks")
    parser.add_argument(
        "--sections", nargs="*", choices=SECTIONS, help="extract these anew, and keep the others"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only:
        table = extract(only=options.only, compiled=not options.no_compile)
        print(json.dumps(table, sort_keys=True))
        return
    path = TABLES / f"torch-{'.'.join(_version().split('.')[:2])}.json"
    if options.sections is None:
        path.write_text(dump(extract(compiled=False)), encoding="utf-8")
        options.sections = [] if options.no_compile else list(SECTIONS)
    for section in options.sections:
        replace_section(path, section)
    sizes = {k: len(v) for k, v in json.loads(path.read_text()).items() if hasattr(v, "keys")}
    print(f"{path}: {sizes}", file=sys.stderr)


def _described(table: dict[str, Any]) -> list[str]:
    """The functions that a section of operators describes from calls, and not from stubs."""
    rows = [row for section in ("functions", "numpy") for row in table[section].items()]
    return [name for name, row in rows if row["returns"] and row["source"] != "stub"]


def replace_section(path: Path, section: str) -> None:
    """Extract one section; the rest of the file stays as it is when that is done."""
    known = json.loads(path.read_text(encoding="utf-8"))
    found = SECTIONS[section](known)
    table = json.loads(path.read_text(encoding="utf-8"))
    table.update(found)
    path.write_text(dump(table), encoding="utf-8")


def _version() -> str:
    import torch

    return str(torch.__version__.partition("+")[0])


def dump(table: dict[str, Any]) -> str:
    """JSON with one entry on each line, sorted, so that two versions can be compared."""
    parts = []
    for key, value in table.items():
        if isinstance(value, dict):
            lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(value.items())]
            parts.append(f"{json.dumps(key)}: {{\n" + ",\n".join(lines) + "\n}")
        elif isinstance(value, list):
            lines = [json.dumps(item) for item in sorted(value)]
            parts.append(f"{json.dumps(key)}: [\n" + ",\n".join(lines) + "\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def extract(only: list[str] | None = None, *, compiled: bool = True) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    subjects = [*functions(), *methods()]
    if only:
        subjects = [subject for subject in subjects if subject.name in only]
    seen = in_processes(observed_entry, subjects, AT_ONCE)
    found = {each.name: declared(each) if entry is None else entry for each, entry in seen}
    entries = {subject.name: found[subject.name] for subject in subjects if found[subject.name]}
    for subject in numpy_subjects():
        if not only or subject.name in only:
            entries[subject.name] = numpy_entry(subject.name)
    if compiled:
        add_breaks(entries)
    table: dict[str, Any] = {
        "schema": SCHEMA,
        "framework": "torch",
        "version": _version(),
        "functions": {k: v for k, v in entries.items() if k.startswith("torch.")},
        "methods": {
            k.removeprefix("Tensor."): v for k, v in entries.items() if k.startswith("Tensor.")
        },
        "numpy": {k: v for k, v in entries.items() if k.startswith("numpy.")},
    }
    if not only:
        table["attributes"] = attributes()
        table["modules"] = modules()
        table["tensor_only_methods"] = tensor_only_methods()
        table["aliases"] = aliases(table["functions"])
    return table


def observed_entry(subject: Subject) -> dict[str, Any]:
    try:
        return entry_of(subject)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        print(f"{subject.name}: {error!r}", file=sys.stderr)
        return declared(subject)


def entry_of(subject: Subject) -> dict[str, Any]:
    samples = subject.samples()
    entry = summarize(samples) or declared(subject)
    if not entry:
        return {}
    if entry["returns"] in (NUMBER, SIZE, STATIC):
        takes_tensor = any(sample.tensors() for sample in samples)
        if entry["returns"] == NUMBER or takes_tensor:
            entry["returns"] = classify_number(samples)
        if entry["returns"] is None:
            if subject.method or _declares_tensor(subject):
                return {}
            entry["returns"] = STATIC
        entry.pop("with_dim", None)
    if entry["returns"] in (TENSOR, TENSORS):
        entry.update(schema_facts(subject))
    return _ordered(with_declared_arity(entry, subject))


def with_declared_arity(entry: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """The entry with the number of tensors that the signature promises."""
    items = declared(subject).get("items")
    if entry["returns"] == TENSORS and "items" not in entry and items:
        return {"returns": TENSORS, "items": items, **entry}
    return entry


def _declares_tensor(subject: Subject) -> bool:
    return any("Tensor" in p.annotation for o in subject.overloads for p in o.parameters)


def declared(subject: Subject) -> dict[str, Any]:
    """The entry that the type stubs or annotations give."""
    plain = [o for o in subject.overloads if not o.has_dim] or subject.overloads
    results = {kind_of_annotation(overload.returns) for overload in plain}
    if len(results) != 1:
        return {}
    kind, items = results.pop()
    if kind is None:
        return {}
    entry: dict[str, Any] = {"returns": kind, "source": "stub"}
    if items:
        entry["items"] = items
    return entry


def schema_facts(subject: Subject) -> dict[str, Any]:
    """Randomness, mutation, aliasing and dynamic shapes as the ATen schemas declare them."""
    import torch

    name = subject.name.rpartition(".")[2]
    if not subject.method and subject.name.count(".") > 1:
        prefix = subject.name.split(".")[-2]
        name = f"{prefix}_{name}" if prefix in ("linalg", "fft", "special") else name
    packet: Any = getattr(torch.ops.aten, name, None)
    if not hasattr(packet, "overloads"):
        return {"mutates": True} if _is_in_place(subject.name) else {}
    facts: dict[str, Any] = {}
    default = [getattr(packet, overload) for overload in packet.overloads()]
    default = [o for o in default if not any(a.is_out for a in o._schema.arguments)]
    tags = [set(overload.tags) for overload in default]
    if tags and all(torch.Tag.nondeterministic_seeded in found for found in tags):
        facts["random"] = True
    if tags and all(torch.Tag.dynamic_output_shape in found for found in tags):
        facts["dynamic_shape"] = True
    firsts = [o._schema.arguments[0].alias_info for o in default if o._schema.arguments]
    if _is_in_place(subject.name) or (firsts and all(a and a.is_write for a in firsts)):
        facts["mutates"] = True
    elif any(a and not a.is_write for a in firsts):
        facts["view"] = True
    return facts


def _is_in_place(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _ordered(entry: dict[str, Any]) -> dict[str, Any]:
    source = entry.pop("source")
    if entry.get("mutates"):
        entry.pop("view", None)
    return {**entry, "source": source}


def add_breaks(entries: dict[str, dict[str, Any]]) -> None:
    """Compile calls of each function, and note the graph break that they all cause.

    A shape that depends on data in some calls only is `may_be_dynamic`.
    """
    breaks = measure_breaks(entries)
    clean = [name for name in entries if name.startswith("numpy.") and name not in breaks]
    of_arrays = measure_breaks_of_arrays(clean)
    for name, entry in entries.items():
        identifier, captured = breaks.get(name, (None, False))
        if identifier:
            entry["reads" if entry["returns"] == SCALAR else "breaks"] = identifier
        elif entry.pop("dynamic_shape", False):
            entry["may_be_dynamic"] = True
        if captured:
            entry["captured"] = True
        if name in of_arrays:
            entry["with_tensor"], captured = of_arrays[name]
            entry.update({"with_tensor_captured": True} if captured else {})
        if entry.get("one_argument", {}).get("dynamic_shape"):
            entry["one_argument"] |= {"breaks": DYNAMIC_SHAPE, "captured": True}
        if name.startswith("numpy.") and not identifier and folds(name):
            entry["folds"] = True
        is_dynamic = DYNAMIC_SHAPE in (identifier, entry.get("with_tensor"))
        if is_dynamic and entry["returns"] in (TENSOR, TENSORS):
            entry["dynamic_shape"] = True
        entries[name] = _ordered(entry)


def breaks(table: dict[str, Any]) -> dict[str, Any]:
    """The operators of a table, with their breaks measured anew."""
    prefixes = {"functions": "", "methods": "Tensor.", "numpy": ""}
    entries: dict[str, dict[str, Any]] = {
        prefix + name: table[section][name]
        for section, prefix in prefixes.items()
        for name in table[section]
    }
    for entry in entries.values():
        for field in ("breaks", "reads", "captured", "with_tensor", "with_tensor_captured"):
            entry.pop(field, None)
    add_breaks(entries)
    return {
        section: {name: entries[prefix + name] for name in table[section]}
        for section, prefix in prefixes.items()
    }


def attributes() -> dict[str, str]:
    import torch

    root = Path(torch.__file__).parent
    names = set(read_attributes(root / "_C" / "__init__.pyi", "TensorBase"))
    names |= {n for n in dir(torch.Tensor) if not callable(getattr(torch.Tensor, n, None))}
    declared_kinds = read_attributes(root / "_C" / "__init__.pyi", "TensorBase")
    found = {}
    for name in names:
        if name.startswith("_"):
            continue
        kind = _attribute_kind(name) or kind_of_annotation(declared_kinds.get(name, ""))[0]
        if kind in (TENSOR, SIZE, STATIC):
            found[name] = kind
    return found


def _attribute_kind(name: str) -> str | None:
    import torch

    values = []
    for tensor in (make_tensor("float32", (2, 3), 0), make_tensor("float32", (4, 5), 0)):
        try:
            values.append(getattr(tensor, name))
        except (RuntimeError, AttributeError, TypeError):
            try:
                values.append(getattr(tensor.to(torch.complex64), name))
            except (RuntimeError, AttributeError, TypeError):
                return None
    kind = kind_of(values[0])
    if kind in (NUMBER, SIZE, STATIC):
        return SIZE if values[0] != values[1] or kind == SIZE else STATIC
    return kind if kind == TENSOR else None


def tensor_only_methods() -> list[str]:
    """Methods that a value has only if it is a tensor, or a NumPy array.

    Inside a region an array is traced like a tensor.
    """
    import torch

    others: list[type] = [str, bytes, list, dict, set, frozenset, int, float, complex, tuple]
    others += [torch.nn.Module, random.Random, io.TextIOWrapper, io.BytesIO]
    others += [torch.nn.ModuleList, torch.nn.ModuleDict, torch.optim.Optimizer]
    others += [torch.Size, torch.Generator, torch.dtype, torch.device]
    taken = {name for cls in others for name in dir(cls)}
    return [
        name
        for name in dir(torch.Tensor)
        if not name.startswith("_") and name not in taken and callable(getattr(torch.Tensor, name))
    ]


if __name__ == "__main__":
    main()
