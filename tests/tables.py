"""Table-driven tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping


def cases(names: str, rows: Mapping[str, tuple[object, ...]]) -> pytest.MarkDecorator:
    """Run a test once for each of `rows`.

    Args:
        names: the names of the arguments, separated by spaces.
        rows: the arguments by row; the row's name says what it shows.
    """
    return pytest.mark.parametrize(names.split(), rows.values(), ids=rows)
