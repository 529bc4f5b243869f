"""How a fix is refused."""


class Withheld(Exception):  # noqa: N818
    """Why there is no fix: one sentence for the user, who can act on it."""
