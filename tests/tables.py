"""Rules are tables: one test for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cases"]


def cases(names: str, rows: Mapping[str, tuple[object, ...]]) -> pytest.MarkDecorator:
    """Ask a test for each of `rows`, which are named by what they show.

    Args:
        names: of the arguments, with spaces between.
        rows: the arguments by the name of the row.
    """
    return pytest.mark.parametrize(names.split(), rows.values(), ids=rows)
