"""Reproducible randomness for the simulation."""

from __future__ import annotations

from random import Random


def rng_for(*names: object) -> Random:
    """A generator that depends only on `names`.

    Code that runs in concurrent tasks takes a new one for each draw, because the event
    loop decides the order of the tasks.
    """
    return Random("/".join(map(str, names)))  # noqa: S311 (reproducible, not secret)
