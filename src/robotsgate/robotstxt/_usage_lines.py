"""The fields that state usage preferences, and which lines apply to an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.robotstxt._octets import lower
from robotsgate.robotstxt._records import is_absolute_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.robotstxt._records import Other

CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENSE = "license"

USAGE_FIELDS_OF_ALL = (CONTENT_SIGNAL, LICENSE)
"""Fields that apply to all agents if they appear above the first group."""

USAGE_FIELDS = (CONTENT_USAGE, *USAGE_FIELDS_OF_ALL)

# A field may start a line if this many characters before it are white space.
_LONGEST_INDENT = 100


def may_state_usage(text: str) -> bool:
    """Whether a line of `text` may start with one of `USAGE_FIELDS_OF_ALL`."""
    text = lower(text)
    for field in USAGE_FIELDS_OF_ALL:
        at = text.find(field)
        while at >= 0:
            before = text[max(0, at - _LONGEST_INDENT) : at].replace("\r", "\n")
            if not before.rpartition("\n")[2].strip():
                return True
            at = text.find(field, at + 1)
    return False


def with_own_lines(of_all: Iterable[Other], own: Sequence[Other]) -> tuple[Other, ...]:
    """All lines for an agent: the lines for all agents, followed by its own.

    An agent's own licenses replace the licenses for all agents (RSL 1.0 §4.4).
    """
    has_license = any(
        field == LICENSE and is_absolute_url(value) for field, value, _ in own
    )
    kept = [one for one in of_all if not (has_license and one[0] == LICENSE)]
    return (*kept, *own)
