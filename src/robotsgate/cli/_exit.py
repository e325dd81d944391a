"""The exit codes of the program."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """The exit codes of `robotsgate check`; other commands use some of them."""

    ALLOWED = 0
    """All allowed, or nothing to report."""
    DISALLOWED = 1
    """Some disallowed; for `lint` and `diff`, something to report."""
    TROUBLE = 2
    """Wrong usage, or something that could not be read or opened."""
    UNDECIDED = 3
    """Some could not be decided."""
    INTERRUPTED = 130
    """Ctrl-C, as the shell counts it: 128 + SIGINT."""
    CLOSED_PIPE = 141
    """Nobody reads the output any more: 128 + SIGPIPE."""


_WORST_FIRST = (Exit.TROUBLE, Exit.UNDECIDED, Exit.DISALLOWED)


def worst(codes: set[Exit]) -> Exit:
    """The code that counts if several things happened."""
    return next((code for code in _WORST_FIRST if code in codes), Exit.ALLOWED)
