"""Chance that is the same in each run: everything random comes from here."""

from __future__ import annotations

from random import Random


def chance_of(*names: object) -> Random:
    """A source of chance of its own for `names`, whoever asks for it and when.

    Draws that are made while tasks run side by side take one each, because the
    order of the tasks is the event loop's.
    """
    return Random("/".join(map(str, names)))  # noqa: S311 (reproducible, no secret)
