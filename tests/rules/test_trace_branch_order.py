"""Tests of a tensor and a Python value: the value is asked first."""

import pytest

FIRST = {
    "a size": (
        """
        @torch.compile
        def f(x):
            if x.sum() == 0 and x.numel() == 4:
                for row in x:
                    x = x + row
            return x * 2
        """,
        "    if x.numel() == 4 and x.sum() == 0:\n",
    ),
    "a flag, behind a not": (
        """
        @torch.compile
        def f(x, flag: bool):
            if not x.any() or flag:
                for row in x:
                    x = x + row
            return x * 2
        """,
        "    if flag or not x.any():\n",
    ),
}


@pytest.mark.parametrize(("source", "part"), FIRST.values(), ids=FIRST)
def test_what_is_known_in_a_graph_is_asked_first(source, part, rewrite):
    assert part in rewrite(source)


LEFT = {
    "what may fail": """
        @torch.compile
        def f(x, sizes: list[int]):
            if x.sum() == 0 and sizes[3] == 4:
                for row in x:
                    x = x + row
            return x * 2
    """,
    "what was read out of a tensor": """
        @torch.compile
        def f(x):
            n = int(x[0])
            if x.sum() == 0 and n == 4:
                for row in x:
                    x = x + row
            return x * 2
    """,
    "a property": """
        class Net(nn.Module):
            asked = 0

            @property
            def is_open(self):
                self.asked += 1
                return True

            def forward(self, x):
                if x.sum() == 0 and self.is_open:
                    for row in x:
                        x = x + row
                return x * 2


        net = torch.compile(Net())
    """,
    "what is used as a value": """
        @torch.compile
        def f(x, flag: bool):
            y = x.sum() and flag
            return x * 2, y
    """,
    "a call that nothing is known of": """
        from elsewhere import ready


        @torch.compile
        def f(x):
            if x.sum() == 0 and ready():
                for row in x:
                    x = x + row
            return x * 2
    """,
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_the_order_of_other_operands_stays(source, rewrite):
    new = rewrite(source)
    assert "x.sum() == 0 and" in new or "x.sum() and flag" in new


def test_a_number_has_one_element(plan):
    source = """
        @torch.compile(fullgraph=True)
        def f(x, rounds: int):
            is_some = x[x > 0].shape[0] > 0
            for i in range(rounds):
                if is_some and i + 1 == rounds:
                    return x * 2
            return x
    """
    (file,) = plan(source).files
    assert [each.fix_title for each in file.applied] == ["Ask `i + 1 == rounds` first"]
