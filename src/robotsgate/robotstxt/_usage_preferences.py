"""A site's preferences for how its content is used, in three vocabularies.

They are kept separate and not translated into each other, so that callers see
contradictions.

- Content-Usage of the IETF, according to two drafts that may change: rules of a group
  and a response header (draft-ietf-aipref-attach-05, 2026-08-19); categories, values,
  and how they combine (draft-ietf-aipref-vocab-08, 2026-09-13).
- Content-Signal of Cloudflare (contentsignals.org, 2025-09-24; for `use` Cloudflare,
  2026-07-01), which is also a response header (Cloudflare's Markdown for Agents, 2026).
  There is no published grammar. Letter case is ignored here.
- License of RSL 1.0 (2025-12-10).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from robotsgate.robotstxt._headers import headers_named
from robotsgate.robotstxt._model import CategoryPreference, Preference, UsagePreferences
from robotsgate.robotstxt._octets import lower, readable
from robotsgate.robotstxt._pattern import IndexedTarget
from robotsgate.robotstxt._records import is_absolute_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._model import Statement
    from robotsgate.robotstxt._records import Other

CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENSE = "license"

USAGE_FIELDS_OF_ALL = (CONTENT_SIGNAL, LICENSE)
"""Fields that apply to all agents if they are above the first group."""

USAGE_FIELDS = (CONTENT_USAGE, *USAGE_FIELDS_OF_ALL)

_HEADERS = (CONTENT_USAGE, CONTENT_SIGNAL)

# If this many characters before a field are white space, it may start a line.
_LONGEST_INDENT = 100

_USAGES = ("train-ai", "search")
_Y_OR_N = {"y": Preference.ALLOW, "n": Preference.DISALLOW}
_WHITE_SPACE = re.compile("[ \t]")

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

_UNKNOWN = CategoryPreference(preference=Preference.UNKNOWN)
_RESTRICTIVENESS = {one: place for place, one in enumerate(Preference)}


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
    """The lines for an agent: those for all agents, followed by its own.

    Its own licenses replace those for all agents (RSL 1.0 §4.4).
    """
    has_license = any(
        field == LICENSE and is_absolute_url(value) for field, value, _ in own
    )
    kept = [one for one in of_all if not (has_license and one[0] == LICENSE)]
    return (*kept, *own)


def usage_preferences(
    lines: Iterable[Other],
    readings: Iterable[str],
    grammar: Grammar,
    *,
    allowed: bool,
    headers: HeadersLike | None = None,
) -> UsagePreferences:
    """The preferences for a target, combined for all of its `readings`.

    Unless the agent may fetch it (`allowed`), all preferences are unknown
    (draft-ietf-aipref-attach-05 §3.1). `lines` are the records of `USAGE_FIELDS` for
    the agent, in the order of the file; `headers` are those of the page, if it was
    fetched.

    Raises:
        TypeError: `headers` does not contain pairs of str.
    """
    values: Mapping[str, list[tuple[str, int]]] = {name: [] for name in USAGE_FIELDS}
    for field, value, line in lines:
        values[field].append((value, line))
    usages: Sequence[Statement] = ()
    signals: Sequence[Statement] = ()
    named = headers_named(headers or (), _HEADERS)
    if allowed:
        usages = [
            statement
            for target in readings
            for statement in _in_rules(values[CONTENT_USAGE], target, grammar)
        ]
        in_headers = [value for name, value in named if name == CONTENT_USAGE]
        usages += _in_headers(in_headers) if in_headers else ()
        sent = ((value, None) for name, value in named if name == CONTENT_SIGNAL)
        signals = _signals([*values[CONTENT_SIGNAL], *sent])
    urls = dict.fromkeys(readable(value) for value, _ in values[LICENSE])
    return UsagePreferences(
        content_usage=_most_restrictive(usages, _USAGES),
        content_signal=_most_restrictive(signals, _SIGNALS),
        license=tuple(filter(is_absolute_url, urls)),
    )


def _in_rules(
    rules: Iterable[tuple[str, int]], target: str, grammar: Grammar
) -> list[Statement]:
    """The statements of the rules with the longest path that matches `target`.

    attach-05 §3.1. If several paths have that length, all of them are used.
    """
    indexed = IndexedTarget(target)
    longest = 0
    dictionaries: list[tuple[str, int]] = []
    for value, line in rules:
        path, dictionary = _path_and_dictionary(value)
        pattern = grammar.spelling(path)
        if len(pattern) < longest or (pattern and not indexed.matches(pattern)):
            continue
        if len(pattern) > longest:
            longest = len(pattern)
            dictionaries.clear()
        dictionaries.append((dictionary, line))
    return [
        statement
        for dictionary, line in dictionaries
        for statement in _statements(dictionary.encode("latin-1"), line)
    ]


def _in_headers(values: Iterable[str]) -> list[Statement]:
    """The statements of the Content-Usage headers of a response (attach-05 §2)."""
    joined = ", ".join(values).strip(" \t")
    return _statements(joined.encode("utf-8", "surrogatepass"), None)


def _path_and_dictionary(value: str) -> tuple[str, str]:
    """The path of a rule, or "", and the text after it."""
    if not value.startswith("/"):
        return "", value
    path, *rest = _WHITE_SPACE.split(value, maxsplit=1)
    return path, "".join(rest).lstrip(" \t")


def _statements(dictionary: bytes, line: int | None) -> list[Statement]:
    """The statements of an RFC 9651 §3.2 dictionary (vocab-08, "Processing Algorithm").

    An invalid dictionary states nothing, nor does a member whose value is not the token
    y or n.
    """
    # Imported here, because few files have such a line.
    from http_sf import StructuredFieldError, Token, parse  # noqa: PLC0415

    try:
        parsed = parse(dictionary, tltype="dictionary")
    except StructuredFieldError:
        return []
    # `parse` is typed for fields of all kinds. A member is (value, parameters).
    members = cast("Mapping[str, tuple[object, object]]", parsed)
    return [
        (category, preference, line)
        for category, (value, _) in members.items()
        if isinstance(value, Token)
        and (preference := _Y_OR_N.get(str(value))) is not None
    ]


def _signals(stated: Iterable[tuple[str, int | None]]) -> list[Statement]:
    """The statements of Content-Signal lines and headers, given as (value, line)."""
    return [
        (category, preference, line)
        for value, line in stated
        for signal in value.lower().split(",")
        for category, _, word in [map(str.strip, signal.partition("="))]
        if (preference := _SIGNALS.get(category, {}).get(word)) is not None
    ]


def _most_restrictive(
    statements: Iterable[Statement], categories: Iterable[str]
) -> dict[str, CategoryPreference]:
    """By category, the first of its most restrictive statements.

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
