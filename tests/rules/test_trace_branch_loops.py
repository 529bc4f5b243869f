"""Loops that end when a tensor says so."""

import importlib.util
import textwrap

import pytest

MASKED = {
    "the test comes first": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(5):
                if y.sum() > 4:
                    break
                y = y + 1
            return y
        """,
        """
        @torch.compile
        def f(x):
            y = x * 2
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(5):
                done = done | (y.sum() > 4)
                y = torch.where(done, y, y + 1)
            return y
        """,
    ),
    "the test comes last, and `return` says `break`": (
        """
        @torch.compile
        def f(x):
            y = torch.zeros_like(x)
            for i in range(5):
                new = y + x * i
                change = (new - y).abs().max()
                y = new
                if change > 3:
                    return y
            return y
        """,
        """
        @torch.compile
        def f(x):
            y = torch.zeros_like(x)
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for i in range(5):
                new = y + x * i
                change = (new - y).abs().max()
                y = torch.where(done, y, new)
                done = done | (change > 3)
            return y
        """,
    ),
    "the test stands in the middle": (
        """
        @torch.compile
        def f(x):
            y = x * 1
            total = torch.zeros_like(x)

            # rounds
            for i in range(4):
                y = y + 1
                if y.sum() > 10:  # enough
                    break
                total = total + y
            return total - y
        """,
        """
        @torch.compile
        def f(x):
            y = x * 1
            total = torch.zeros_like(x)

            done = torch.zeros((), dtype=torch.bool, device=y.device)
            # rounds
            for i in range(4):
                y = torch.where(done, y, y + 1)
                done = done | (y.sum() > 10)  # enough
                total = torch.where(done, total, total + y)
            return total - y
        """,
    ),
    "the rest of a round is skipped": (
        """
        @torch.compile
        def f(x):
            total = torch.zeros(())
            for i in range(8):
                item = x[i]
                if item < 0:
                    continue
                total = total + item
            return total
        """,
        """
        @torch.compile
        def f(x):
            total = torch.zeros(())
            for i in range(8):
                item = x[i]
                skip = (item < 0).reshape(())
                total = torch.where(skip, total, total + item)
            return total
        """,
    ),
    "a counter bounds the loop": (
        """
        @torch.compile
        def f(x):
            y = x * 1
            n = 0
            while y.sum() > 1 and n < 4:
                y = y - 1
                n += 1
            return y * 2
        """,
        """
        @torch.compile
        def f(x):
            y = x * 1
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(4):
                done = done | ~(y.sum() > 1)
                y = torch.where(done, y, y - 1)
            return y * 2
        """,
    ),
    "the counter is used, starts later, and its limit is included": (
        """
        @torch.compile
        def f(x):
            y = x * 1
            n = 2
            while n <= 5 and not y.sum() < 1:
                y = y - n
                n += 1
            return y * 2
        """,
        """
        @torch.compile
        def f(x):
            y = x * 1
            n = 2
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(2, 5 + 1):
                done = done | (y.sum() < 1)
                y = torch.where(done, y, y - n)
                n += 1
            return y * 2
        """,
    ),
    "the start of the counter is read in front of the loop": (
        """
        @torch.compile
        def f(x):
            n = 0
            y = x * 1 + n
            while y.sum() > 1 and n < 4:
                y = y - 1
                n += 1
            return y * 2
        """,
        """
        @torch.compile
        def f(x):
            n = 0
            y = x * 1 + n
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(4):
                done = done | ~(y.sum() > 1)
                y = torch.where(done, y, y - 1)
            return y * 2
        """,
    ),
    "variables are swapped": (
        """
        @torch.compile
        def f(x):
            a = x * 1
            b = x * 2
            for _ in range(6):
                a, b = b, a + b
                if b.sum() > 9:
                    break
            return a - b
        """,
        """
        @torch.compile
        def f(x):
            a = x * 1
            b = x * 2
            done = torch.zeros((), dtype=torch.bool, device=a.device)
            for _ in range(6):
                a, b = torch.where(done, a, b), torch.where(done, b, a + b)
                done = done | (b.sum() > 9)
            return a - b
        """,
    ),
    "a chained comparison": (
        """
        @torch.compile
        def f(x):
            y = x * 1
            for _ in range(6):
                if 2 < y.sum() < 4:
                    break
                y = y + 0.2
            return y
        """,
        """
        @torch.compile
        def f(x):
            y = x * 1
            done = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(6):
                value = y.sum()
                done = done | ((2 < value) & (value < 4))
                y = torch.where(done, y, y + 0.2)
            return y
        """,
    ),
    "names that are taken": (
        """
        @torch.compile
        def f(x, done):
            y = x * done
            for _ in range(5):
                if y.sum() > 4:
                    break
                y += 1
            return y
        """,
        """
        @torch.compile
        def f(x, done):
            y = x * done
            done_2 = torch.zeros((), dtype=torch.bool, device=y.device)
            for _ in range(5):
                done_2 = done_2 | (y.sum() > 4)
                y = torch.where(done_2, y, y + 1)
            return y
        """,
    ),
}

UNBOUNDED = {
    "one assignment": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            while y.sum() > 1:
                y = y - 1
            return y
        """,
        """
        @torch.compile
        def f(x):
            y = x * 2
            (y,) = torch.while_loop(lambda y: y.sum() > 1, lambda y: (y - 1,), (y,))
            return y
        """,
    ),
    "several assignments": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            k = torch.zeros(())
            while y.sum() > 1:  # as long as it takes
                step = y.abs() + 1
                y = y - step
                k = k + 1
            return y * k
        """,
        """
        @torch.compile
        def f(x):
            y = x * 2
            k = torch.zeros(())

            # as long as it takes
            def unfinished(y, k):
                return y.sum() > 1

            def advance(y, k):
                step = y.abs() + 1
                y = y - step
                k = k + 1
                return y, k

            y, k = torch.while_loop(unfinished, advance, (y, k))
            return y * k
        """,
    ),
}


def _dedent(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


@pytest.mark.parametrize(("source", "expected"), MASKED.values(), ids=MASKED)
def test_a_bounded_loop_runs_on_behind_a_mask(rewrite, source, expected):
    assert rewrite(source) == _dedent(expected)


@pytest.mark.parametrize(("source", "expected"), UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_loop_without_a_bound_becomes_while_loop(rewrite, source, expected):
    assert rewrite(source) == _dedent(expected)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="runs torch")
@pytest.mark.parametrize(("source", "expected"), MASKED.values(), ids=MASKED)
def test_the_masked_loop_stops_after_the_same_round(source, expected):
    import torch

    old, new = (_function(_dedent(each)) for each in (source, expected))
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(8, generator=generator) * (seed % 6) / 3 + (seed % 7 - 3) / 4
        arguments = (x, torch.tensor(1.5)) if "done)" in source else (x,)
        assert torch.equal(old(*arguments), new(*arguments)), seed
    nan = (torch.full((8,), float("nan")), torch.tensor(1.5))[: old.__code__.co_argcount]
    assert torch.equal(old(*nan).isnan(), new(*nan).isnan())


def _function(source: str):
    import torch

    namespace: dict[str, object] = {"torch": torch}
    exec(source.replace("@torch.compile\n", ""), namespace)
    return namespace["f"]


WITHHELD = {
    "the caller's own tensor may come back": (
        """
        @torch.compile
        def f(x):
            n = 0
            while x.sum() > 1 and n < 3:
                x = x - 1
                n += 1
            return x
        """,
        "start from `x.clone()`",
    ),
    "a view of it may come back": (
        """
        @torch.compile
        def f(x):
            y = x.view(-1)
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + 1
            return y
        """,
        "start from `y.clone()`",
    ),
    "the loop variable says when it ended": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for i in range(4):
                if y.sum() > 1:
                    break
                y = y + 1
            return y * i
        """,
        "`i` is read after the loop",
    ),
    "a counter says when it ended": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            n = 0
            while y.sum() > 1 and n < 4:
                y = y - 1
                n += 1
            return y * n
        """,
        "`n` is read after the loop: count the rounds in a tensor",
    ),
    "a Python value says when it ended": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            scale = 1.0
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + 1
                scale = scale * 0.5
            return y * scale
        """,
        "`scale` is a Python value that says when the loop was left",
    ),
    "an effect would happen more often": (
        """
        @torch.compile
        def f(x, log):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + 1
                log.append(1)
            return y
        """,
        "`log.append(1)` is more than an assignment",
    ),
    "random numbers would be drawn more often": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + torch.rand_like(y)
            return y
        """,
        "draws random numbers",
    ),
    "a variable without a value before the loop": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(4):
                last = y.sum()
                if last > 1:
                    break
                y = y + 1
            return y * last
        """,
        "`last` has no value before the loop",
    ),
    "more than the exit in the branch": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    y = -y
                    break
                y = y + 1
            return y
        """,
        "does more than leave the loop",
    ),
    "another result": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    return -y
                y = y + 1
            return y
        """,
        "returns something else",
    ),
    "an else": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + 1
            else:
                y = -y
            return y
        """,
        "the loop has an `else`",
    ),
    "no bound": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            while True:
                y = y + 1
                if y.sum() > 1:
                    break
            return y
        """,
        "no static bound",
    ),
    "a condition that never changes": (
        """
        @torch.compile
        def f(x, on):
            y = x * 2
            n = 0
            while n < 4:
                y = y + 1
                if y.sum() > 1:
                    break
                n = n + 0
            return y
        """,
        "`n` is not counted up by one",
    ),
    "the limit moves": (
        """
        @torch.compile
        def f(x, limit=3):
            y = x * 2
            n = 0
            while y.sum() > 1 and n < limit:
                y = y - 1
                n += 1
                limit = limit + 0
            return y
        """,
        "the limit of `n` changes",
    ),
    "a write into another's tensor": (
        """
        @torch.compile
        def f(x):
            y = x
            for _ in range(4):
                if y.sum() > 1:
                    break
                y += 1
            return y * 2
        """,
        "writes into a tensor that others may hold",
    ),
    "a Python number in a loop without a bound": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            n = 1
            while y.sum() > 1:
                y = y - n
                n += 1
            return y
        """,
        "`n` is a Python number that changes from round to round",
    ),
}


@pytest.mark.parametrize(("source", "part"), WITHHELD.values(), ids=WITHHELD)
def test_a_loop_is_left_alone_with_a_reason(reason, source, part):
    assert part in reason(source)


def test_what_a_mask_rests_on_is_in_its_title(plan):
    source = """
        @torch.compile
        def f(x, w):
            y = x * 2
            for _ in range(4):
                if y.sum() > 1:
                    break
                y = y + w.log()
            return y
        """
    (file,) = plan(source).files
    title = file.applied[0].fix_title or ""
    assert "the loop is not over before it used `w`" in title
    assert "later rounds have finite gradients" in title
    assert file.has_unsafe


FAILURES = {
    "an index in the test": (
        """
        @torch.compile
        def f(x, w):
            for i in range(10):
                if w[i].sum() > 3:
                    break
                x = x * 0.5
            return x * 1
        """,
        "`w[i]` never fails",
    ),
    "an index that nothing uses": (
        """
        @torch.compile
        def f(x, w):
            for i in range(10):
                if x.sum() > 3:
                    break
                t = w[i]
                x = x * 0.5
            return x * 1
        """,
        "`w[i]` never fails",
    ),
    "a division of Python numbers": (
        """
        @torch.compile
        def f(x):
            n = 3
            for _ in range(6):
                if x.sum() > 2:
                    break
                n = n - 1
                x = x + 1.0 / n
            return x * 1
        """,
        "`1.0 / n` never fails",
    ),
    "a limit that may be a float": (
        """
        @torch.compile
        def f(x, limit):
            n = 0
            y = x * 1
            while n < limit and y.sum() < 3:
                y = y * 2
                n += 1
            return y
        """,
        "`limit` is a whole number",
    ),
}


@pytest.mark.parametrize(("source", "condition"), FAILURES.values(), ids=FAILURES)
def test_what_may_fail_in_the_other_rounds_is_in_the_title(plan, source, condition):
    (file,) = plan(source).files
    assert condition in (file.applied[0].fix_title or "")
    assert file.has_unsafe


LIMITS = {
    "2.5": "`2.5` is no whole number that is the same in every round",
    "limit()": "`limit()` is no whole number that is the same in every round",
    "range": "the fix needs `range`, which is a variable of the function",
}


@pytest.mark.parametrize(("limit", "part"), LIMITS.items(), ids=LIMITS)
def test_a_limit_that_range_does_not_take(reason, limit, part):
    source = f"""
        def limit():
            print("asked")
            return 3

        @torch.compile
        def f(x, range=5):
            n = 0
            y = x * 1
            while n < {limit} and y.sum() < 3:
                y = y * 2
                n += 1
            return y
        """
    source = source if limit == "range" else source.replace("range=5", "other=5")
    assert part in reason(source)


def test_the_variable_of_a_loop_in_a_loop_is_not_read_later(rewrite):
    source = """
        @torch.compile
        def f(x):
            out = []
            for k in range(2):
                y = x * k
                for i in range(4):
                    y = y + 1
                    if y.sum() > 2:
                        break
                out.append(y)
            return out
        """
    assert "y = torch.where(done, y, y + 1)" in rewrite(source)
