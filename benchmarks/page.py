"""Writes the tables of a run into a Markdown page, between its markers.

A part of the page is marked `<!-- begin: NAME -->`, on a line of its own, until
`<!-- end: NAME -->`. What lies between is replaced; the rest is left as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["rewritten"]

_PART = re.compile(
    r"^<!-- begin: (?P<name>[^\n]+?) -->\n.*?^<!-- end: (?P=name) -->$",
    re.DOTALL | re.MULTILINE,
)


def rewritten(page: str, parts: Mapping[str, str]) -> str:
    """`page` with the parts that are known in place of what stood there.

    Args:
        page: Markdown; a part that is not in `parts` stays.
        parts: Markdown by name; one that has no place in the page is left out.
    """

    def replaced(part: re.Match[str]) -> str:
        name = part["name"]
        if name not in parts:
            return part[0]
        return (
            f"<!-- begin: {name} -->\n\n{parts[name].strip()}\n\n<!-- end: {name} -->"
        )

    return _PART.sub(replaced, page)
