"""Says what a site wants its content to be used for, in three vocabularies.

Content-Usage (IETF AIPREF), Content-Signal (Cloudflare) and License (RSL) are kept
apart. None is translated into another, so that a caller sees contradictions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate._headers import header_values
from robotsgate.robotstxt import _content_signal, _content_usage
from robotsgate.robotstxt._model import CategoryPreference, Preference, UsagePreferences
from robotsgate.robotstxt._octets import readable
from robotsgate.robotstxt._records import is_absolute_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from robotsgate._headers import HeadersLike
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._model import Statement
    from robotsgate.robotstxt._parser import Other

CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENSE = "license"

USAGE_FIELDS_OF_ALL = (CONTENT_SIGNAL, LICENSE)
"""Fields that hold for all agents if they stand above the first group."""

USAGE_FIELDS = (CONTENT_USAGE, *USAGE_FIELDS_OF_ALL)

# If this many characters before a field are white space, it may begin its line.
_LONGEST_INDENT = 100

_UNKNOWN = CategoryPreference(preference=Preference.UNKNOWN)
_RESTRICTIVENESS = {one: place for place, one in enumerate(Preference)}


def may_state_usage(text: str) -> bool:
    """Whether a line of `text` may begin with one of `USAGE_FIELDS_OF_ALL`."""
    text = text.lower()
    for field in USAGE_FIELDS_OF_ALL:
        at = text.find(field)
        while at >= 0:
            before = text[max(0, at - _LONGEST_INDENT) : at].replace("\r", "\n")
            if not before.rpartition("\n")[2].strip():
                return True
            at = text.find(field, at + 1)
    return False


def usage_preferences(
    lines: Iterable[Other],
    target: str,
    grammar: Grammar,
    *,
    allowed: bool,
    headers: HeadersLike | None = None,
) -> UsagePreferences:
    """What the site prefers `target` to be used for.

    Args:
        lines: records of `USAGE_FIELDS` that are for the agent, in the order of the
            file.
        target: in the form of `grammar`.
        grammar: the dialect's way to read paths.
        allowed: whether the agent may fetch `target`. If not, every preference is
            unknown (draft-ietf-aipref-attach-05 §3.1).
        headers: those of the page, if it has been fetched.

    Raises:
        TypeError: `headers` does not hold pairs of text.
    """
    values: Mapping[str, list[tuple[str, int]]] = {name: [] for name in USAGE_FIELDS}
    for field, value, line in lines:
        values[field].append((value, line))
    usages: Sequence[Statement] = ()
    signals: Sequence[Statement] = ()
    in_header = header_values(headers or (), CONTENT_USAGE)
    if allowed:
        usages = _content_usage.in_rules(values[CONTENT_USAGE], target, grammar)
        usages += _content_usage.in_header(in_header) if in_header else ()
        signals = _content_signal.in_lines(values[CONTENT_SIGNAL])
    urls = dict.fromkeys(readable(value) for value, _ in values[LICENSE])
    return UsagePreferences(
        content_usage=_most_restrictive(usages, _content_usage.CATEGORIES),
        content_signal=_most_restrictive(signals, _content_signal.CATEGORIES),
        license=tuple(filter(is_absolute_url, urls)),
    )


def _most_restrictive(
    statements: Iterable[Statement], categories: Iterable[str]
) -> dict[str, CategoryPreference]:
    """For each category the first of its most restrictive statements.

    draft-ietf-aipref-vocab-08 (2026-09-13), "Combining Preferences".
    """
    result = dict.fromkeys(categories, _UNKNOWN)
    for category, preference, line in statements:
        known = result.get(category)
        if known is not None and (
            _RESTRICTIVENESS[preference] < _RESTRICTIVENESS[known.preference]
        ):
            result[category] = CategoryPreference(preference=preference, line=line)
    return result
