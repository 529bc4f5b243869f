"""Names of torch that stand for neither numbers, functions nor classes.

Section `constants`: "dtype", "layout" and "memory_format" -> the dotted names of those.
"""


def constants() -> dict[str, list[str]]:
    import torch

    kinds = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}
    return {
        kind: sorted(f"torch.{name}" for name, value in vars(torch).items() if type(value) is cls)
        for kind, cls in kinds.items()
    }
