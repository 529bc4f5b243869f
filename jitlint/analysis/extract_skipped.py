"""What torch itself says it never traces.

Section `skipped`, from `torch._dynamo.trace_rules`: {"standard": modules of the standard
library, "third_party": packages, "torch": modules of torch} whose functions are never
traced, and "functions": functions of torch that are skipped by name. Each is a list of
dotted names.
"""


def skipped() -> dict[str, list[str]]:
    from torch._dynamo import trace_rules
    from torch._dynamo.variables import SkipFunctionVariable

    rules = trace_rules.manual_torch_name_rule_map
    functions = {
        name.replace("#", ".")
        for name, rule in rules.items()
        if rule is SkipFunctionVariable and ".py" not in name
    }
    return {
        "standard": sorted(module.__name__ for module in trace_rules.BUILTIN_SKIPLIST),
        "third_party": sorted(trace_rules.THIRDPARTY_SKIPLIST),
        "torch": sorted(trace_rules.MOD_SKIPLIST),
        "functions": sorted(functions),
    }
