"""Arms that write into tensors."""

import textwrap

import pytest

BUFFERS = """class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("seen", torch.tensor(False))

    def forward(self, x):
{body}
        return x - self.mean


stats = torch.compile(Stats())
"""

WRITTEN = {
    "arithmetic is written as such": (
        """
        if x.sum() > 0:
            self.mean.mul_(2)
        """,
        "self.mean.copy_(torch.where(x.sum() > 0, self.mean * 2, self.mean))",
    ),
    "an elementwise method": (
        """
        if x.sum() > 0:
            self.mean.clamp_(-1, max=1)
        """,
        "self.mean.copy_(torch.where(x.sum() > 0, self.mean.clamp(-1, max=1), self.mean))",
    ),
    "fill and zero": (
        """
        if x.sum() > 0:
            self.mean.zero_(); self.seen.fill_(True)  # again
        """,
        """
        condition = x.sum() > 0
        self.mean.copy_(torch.where(condition, 0, self.mean)); self.seen.copy_(torch.where(condition, True, self.seen))  # again
        """,  # noqa: E501
    ),
    "an augmented assignment of an attribute": (
        """
        if x.sum() > 0: self.mean += x.detach().mean(0)
        """,
        "self.mean.copy_(torch.where(x.sum() > 0, self.mean + x.detach().mean(0), self.mean))",
    ),
    "an item": (
        """
        if x.sum() > 0:
            self.mean[0] = 1.0
        """,
        "self.mean[0] = torch.where(x.sum() > 0, 1.0, self.mean[0])",
    ),
    "a condition that the arm changes is evaluated once": (
        """
        if self.seen:
            self.seen.fill_(False)
            self.mean.fill_(1)
        """,
        """
        condition = self.seen.clone()
        self.seen.copy_(torch.where(condition, False, self.seen))
        self.mean.copy_(torch.where(condition, 1, self.mean))
        """,
    ),
    "a condition that is itself written into is copied": (
        """
        flag = x.sum() > 0
        if flag:
            flag.fill_(False)
            self.mean.fill_(1)
        """,
        """
        flag = x.sum() > 0
        condition = flag.clone()
        flag.copy_(torch.where(condition, False, flag))
        self.mean.copy_(torch.where(condition, 1, self.mean))
        """,
    ),
    "a flag in front stays in Python": (
        """
        if self.training and x.sum() > 0:
            # only now
            self.mean.add_(1)
        """,
        """
        if self.training:
            # only now
            self.mean.copy_(torch.where(x.sum() > 0, self.mean + 1, self.mean))
        """,
    ),
}


def module(body: str) -> str:
    return BUFFERS.format(body=textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8))


@pytest.mark.parametrize(("body", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_the_chosen_value_is_written_always(rewrite, body, expected):
    assert rewrite(module(body)) == module(expected)


WITHHELD = {
    "more than writes": (
        """
        if x.sum() > 0:
            self.mean.mul_(2)
            print("doubled")
        """,
        '`print("doubled")` is more than a write into a tensor',
    ),
    "an else": (
        """
        if x.sum() > 0:
            self.mean.mul_(2)
        else:
            self.mean.mul_(3)
        """,
        "has an `else`",
    ),
    "random numbers": (
        """
        if x.sum() > 0:
            self.mean.copy_(torch.rand(4))
        """,
        "draws random numbers",
    ),
    "no elementwise form": (
        """
        if x.sum() > 0:
            self.mean.index_fill_(0, torch.tensor([0]), 1)
        """,
        "`index_fill_` has no form that could be chosen",
    ),
    "a chain of writes": (
        """
        if x.sum() > 0:
            self.mean.mul_(0.9).add_(0.1)
        """,
        "write one operation in a statement",
    ),
    "a mask": (
        """
        mask = self.mean > 1
        if x.sum() > 0:
            self.mean[mask] = self.mean[mask] * 2
        """,
        "`self.mean[mask]` has a size that depends on data",
    ),
    "an index that is data": (
        """
        largest = x.argmax()
        if x.sum() > 0:
            self.mean[largest] = 0
        """,
        "indexes by data",
    ),
}


@pytest.mark.parametrize(("body", "part"), WITHHELD.values(), ids=WITHHELD)
def test_an_arm_is_left_alone_with_a_reason(reason, body, part):
    assert part in reason(module(body))


def test_whole_numbers_are_not_rounded(reason):
    source = """
        @torch.compile
        def f(x):
            counts = torch.zeros(4, dtype=torch.int64)
            if x.sum() > 0:
                counts.add_(0.5)
            return counts
        """
    assert "would be rounded" in reason(source)


def test_a_write_is_never_called_safe(plan):
    (file,) = plan(module("if x.sum() > 0:\n    self.mean.mul_(2)")).files
    assert file.has_unsafe
    assert "no gradient needs `self.mean`" in (file.applied[0].fix_title or "")
