"""A site's preferences for how its content is used, in three vocabularies.

The vocabularies are kept separate and not translated into each other, so that callers
can see contradictions.

- The IETF's Content-Usage, from two drafts that may change: one covers rules in groups
  and the response header (draft-ietf-aipref-attach-05, 2026-08-19); the other covers
  categories, values and how they combine (draft-ietf-aipref-vocab-08, 2026-09-13).
- Cloudflare's Content-Signal (contentsignals.org, 2025-09-24; Cloudflare for `use`,
  2026-07-01), which may also be a response header (Cloudflare's Markdown for Agents,
  2026). It has no published grammar; robotsgate ignores letter case.
- RSL 1.0's License (2025-12-10).

This module is imported only when it is used, because few crawlers need it.
"""

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from robotsgate._public import set_module
from robotsgate.robotstxt._dialect import Grammar, readable
from robotsgate.robotstxt._headers import HeadersLike, headers_named
from robotsgate.robotstxt._matcher import IndexedTarget
from robotsgate.robotstxt._model import JSONValue, as_json
from robotsgate.robotstxt._parser import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    LICENSE,
    USAGE_FIELDS,
    Other,
    is_absolute_url,
)


@set_module("robotsgate.robotstxt")
class Preference(enum.Enum):
    """A preference for one category of use; the most restrictive value comes first."""

    DISALLOW = "disallow"
    ALLOW = "allow"
    IMMEDIATE = "immediate"
    """The content may be used, but not stored (`use` in Content-Signal)."""
    REFERENCE = "reference"
    """An index, excerpts and links may be stored (`use` in Content-Signal)."""
    FULL = "full"
    """The content may be summarized and reproduced (`use` in Content-Signal)."""
    UNKNOWN = "unknown"
    """The site states no preference that robotsgate understands."""


Statement = tuple[str, Preference, int | None]
"""One statement: (category, preference, line, or `None` for a header)."""


@set_module("robotsgate.robotstxt")
@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPreference(JSONValue):
    """A site's preference for one category, and where it is stated.

    Attributes:
        preference: the most restrictive preference stated.
        line: the number of the first line that states it; `None` if it is stated only
            in a response header, or not at all.
    """

    preference: Preference
    line: int | None = None


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePreferences(JSONValue):
    """A site's preferences for how one agent uses the content of one URL.

    The vocabularies are kept separate and may contradict each other. A preference does
    not permit fetching: see `RobotsTxt.can_fetch`.

    Attributes:
        content_usage: the Content-Usage preferences for the keys "train-ai" and
            "search" (ALLOW, DISALLOW or UNKNOWN).
        content_signal: the Content-Signal preferences for "search", "ai-input" and
            "ai-train" (ALLOW, DISALLOW or UNKNOWN) and for "use" (IMMEDIATE,
            REFERENCE, FULL or UNKNOWN).
        license: the absolute URLs in License lines in the agent's groups or, if there
            are none, above the first group; without duplicates, in file order. They
            are not fetched.
    """

    content_usage: Mapping[str, CategoryPreference]
    content_signal: Mapping[str, CategoryPreference]
    license: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The preferences as JSON-compatible types, by vocabulary."""
        return {
            "content-usage": as_json(self.content_usage),
            "content-signal": as_json(self.content_signal),
            "license": as_json(self.license),
        }


_Vocabulary = dict[str, dict[str, Preference]]
"""The values of each category."""

_Y_OR_N = {"y": Preference.ALLOW, "n": Preference.DISALLOW}
_USAGES: _Vocabulary = {"train-ai": _Y_OR_N, "search": _Y_OR_N}
_WHITE_SPACE = re.compile("[ \t]")

_YES_OR_NO = {"yes": Preference.ALLOW, "no": Preference.DISALLOW}
_SIGNALS: _Vocabulary = {
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


def usage_preferences(
    lines: Iterable[Other],
    readings: Iterable[str],
    grammar: Grammar,
    *,
    allowed: bool,
    headers: HeadersLike | None = None,
) -> UsagePreferences:
    """The preferences for a target, combined over all its `readings`.

    Unless the agent may fetch the target (`allowed`), all preferences are unknown
    (draft-ietf-aipref-attach-05 §3.1). `lines` are the agent's records whose field is
    in `USAGE_FIELDS`, in file order; `headers` are the page's response headers, if it
    was fetched.
    """
    values: Mapping[str, list[tuple[str, int]]] = {name: [] for name in USAGE_FIELDS}
    for field, value, line in lines:
        values[field].append((value, line))
    usages: list[Statement] = []
    signals: list[Statement] = []
    named = headers_named(headers or (), (CONTENT_USAGE, CONTENT_SIGNAL))
    if allowed:
        for target in readings:
            usages += _in_rules(values[CONTENT_USAGE], target, grammar)
        usages += _in_headers([value for name, value in named if name == CONTENT_USAGE])
        sent = ((value, None) for name, value in named if name == CONTENT_SIGNAL)
        for value, place in (*values[CONTENT_SIGNAL], *sent):
            signals += _statements(_signal_members(value), _SIGNALS, place)
    urls = dict.fromkeys(readable(value) for value, _ in values[LICENSE])
    return UsagePreferences(
        content_usage=_most_restrictive(usages, _USAGES),
        content_signal=_most_restrictive(signals, _SIGNALS),
        license=tuple(filter(is_absolute_url, urls)),
    )


def states_preference(field: str, value: str) -> bool:
    """Whether all of a usage line can be used, for diagnostics.

    That is, it names at least one known category, and gives a known value to each.
    Unknown categories may be from a later version.
    """
    if field == LICENSE:
        return is_absolute_url(value)
    if field == CONTENT_USAGE:
        _, dictionary = _path_and_dictionary(value)
        vocabulary, members = _USAGES, _members(dictionary.encode("latin-1"))
    else:
        vocabulary, members = _SIGNALS, [*_signal_members(value)]
    words = [(vocabulary[one], word) for one, word in members if one in vocabulary]
    return bool(words) and all(word in known for known, word in words)


def _in_rules(
    rules: Iterable[tuple[str, int]], target: str, grammar: Grammar
) -> Iterator[Statement]:
    """The statements in the rules with the longest path that matches `target`.

    If several matching paths are equally long, all are used (attach-05 §3.1).
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
    for dictionary, line in dictionaries:
        yield from _statements(_members(dictionary.encode("latin-1")), _USAGES, line)


def _in_headers(values: Sequence[str]) -> Iterator[Statement]:
    """The statements in a response's Content-Usage headers (attach-05 §2)."""
    if values:
        dictionary = ", ".join(values).strip(" \t").encode("utf-8", "surrogatepass")
        yield from _statements(_members(dictionary), _USAGES, None)


def _path_and_dictionary(value: str) -> tuple[str, str]:
    """A rule's path, or "" if it has none, and the text that follows."""
    if not value.startswith("/"):
        return "", value
    path, *rest = _WHITE_SPACE.split(value, maxsplit=1)
    return path, "".join(rest).lstrip(" \t")


def _statements(
    members: Iterable[tuple[str, str]], vocabulary: _Vocabulary, line: int | None
) -> Iterator[Statement]:
    """The statements in the members whose category and value are in `vocabulary`."""
    for category, word in members:
        preference = vocabulary.get(category, {}).get(word)
        if preference is not None:
            yield category, preference, line


def _members(dictionary: bytes) -> list[tuple[str, str]]:
    """The (category, value) pairs of an RFC 9651 §3.2 dictionary.

    An invalid dictionary has none. A value that is not a token becomes "".
    """
    # Imported here, because few files have such a line.
    from http_sf import StructuredFieldError, Token, parse  # noqa: PLC0415

    try:
        parsed = parse(dictionary, tltype="dictionary")
    except StructuredFieldError:
        return []
    # `parse` is typed for all kinds of fields. A member is (value, parameters).
    members = cast("Mapping[str, tuple[object, object]]", parsed)
    return [
        (category, str(value) if isinstance(value, Token) else "")
        for category, (value, _) in members.items()
    ]


def _signal_members(value: str) -> Iterator[tuple[str, str]]:
    """The (category, value) pairs of a Content-Signal line or header."""
    for signal in value.lower().split(","):
        category, _, word = signal.partition("=")
        yield category.strip(), word.strip()


def _most_restrictive(
    statements: Iterable[Statement], categories: Iterable[str]
) -> dict[str, CategoryPreference]:
    """For each category, the most restrictive statement; on a tie, the first one.

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
