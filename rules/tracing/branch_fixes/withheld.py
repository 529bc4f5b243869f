"""How a fixer says no."""

from jitlint.finding import Withheld

__all__ = ["NotMine", "Withheld"]


class NotMine(Exception):  # noqa: N818
    """The construct is not of the kind that this fixer rewrites; another one may."""
