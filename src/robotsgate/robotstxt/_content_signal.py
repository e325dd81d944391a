"""Reads Content-Signal, Cloudflare's words for what content may be used for.

Sources: contentsignals.org (2025-09-24); Cloudflare for `use` (2026-07-01).
No document gives a grammar. This module ignores letter case. If a signal is repeated,
the most restrictive value counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import Preference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robotsgate.robotstxt._model import Statement

_YES_OR_NO = {"yes": Preference.ALLOW, "no": Preference.DISALLOW}
_SIGNALS = {
    "search": _YES_OR_NO,
    "ai-input": _YES_OR_NO,
    "ai-train": _YES_OR_NO,
    "use": {
        "immediate": Preference.IMMEDIATE,
        "reference": Preference.REFERENCE,
        "full": Preference.FULL,
    },
}

CATEGORIES = tuple(_SIGNALS)


def in_lines(lines: Iterable[tuple[str, int]]) -> list[Statement]:
    """What Content-Signal records state; each is given as (value, line)."""
    return [
        (category, preference, line)
        for value, line in lines
        for signal in value.lower().split(",")
        for category, _, word in [map(str.strip, signal.partition("="))]
        if (preference := _SIGNALS.get(category, {}).get(word)) is not None
    ]
