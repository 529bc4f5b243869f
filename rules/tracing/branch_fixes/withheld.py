"""How a fixer says no."""


class NotMine(Exception):  # noqa: N818
    """The construct is not of the kind that this fixer rewrites; another one may."""


class Withheld(Exception):  # noqa: N818
    """Why there is no fix: one sentence for the user, who can act on it."""
