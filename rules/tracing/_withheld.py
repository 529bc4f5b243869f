"""How a fixer says no."""


class NotMine(Exception):
    """The construct is not of the kind that this fixer rewrites; another one may."""


class Withheld(Exception):
    """Why there is no fix: one sentence for the user, who can act on it."""
