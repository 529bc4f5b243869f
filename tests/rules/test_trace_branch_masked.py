"""Branches around a write through a mask: the mask alone says what is written."""

import pytest

WRITTEN = {
    "a mask and a test": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            if d.sum() == 0:
                d[d.sum(dim=1).eq(0)] = 1
            return d * 2
        """,
        "    d[d.sum(dim=1).eq(0) & (d.sum() == 0)] = 1\n",
    ),
    "a test for any of the mask": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            dead = d < 0
            if dead.any():
                # rows that died
                d[dead] = 0.5
            return d * 2
        """,
        "    # rows that died\n    d[dead] = 0.5\n",
    ),
    "a test for any of the mask, as a function": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            if torch.any(d < 0):
                d[d < 0] = 0.5
            return d * 2
        """,
        "    d[d < 0] = 0.5\n",
    ),
    "a test for any of another mask": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            dead, alive = d < 0, d > 1
            if alive.any():
                d[dead] = 0.5
            return d * 2
        """,
        "    d[dead & alive.any()] = 0.5\n",
    ),
}


@pytest.mark.parametrize(("source", "part"), WRITTEN.values(), ids=WRITTEN)
def test_a_write_through_a_mask_needs_no_branch(source, part, rewrite, plan):
    new = rewrite(source)
    assert part in new
    assert "if " not in new
    (file,) = plan(source).files
    assert file.has_unsafe
    assert "no gradient needs `d`" in (file.applied[0].fix_title or "")


LEFT = {
    "an index is no mask": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            rows = d.sum(1).argmax()
            if d.sum() == 0:
                d[rows] = 1
            return d * 2
        """
    ),
    "an else": (
        """
        @torch.compile
        def f(d):
            d = d * 1
            if d.sum() == 0:
                d[d < 0] = 1
            else:
                d[d > 0] = 2
            return d * 2
        """
    ),
}


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_another_write_keeps_its_branch(source, rewrite):
    assert "if " in rewrite(source)
