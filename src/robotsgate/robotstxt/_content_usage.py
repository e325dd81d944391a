"""Reads Content-Usage, by which a site says what its content may be used for.

Sources, both drafts of the IETF that may change:
draft-ietf-aipref-attach-05 (2026-08-19): rules of a group, and a response header.
draft-ietf-aipref-vocab-08 (2026-09-13): categories, values, and how they combine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from robotsgate.robotstxt._indexed_target import IndexedTarget
from robotsgate.robotstxt._model import Preference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._model import Statement

CATEGORIES = ("train-ai", "search")

_PREFERENCES = {"y": Preference.ALLOW, "n": Preference.DISALLOW}

_WHITE_SPACE = re.compile("[ \t]")


def in_rules(
    rules: Iterable[tuple[str, int]], target: str, grammar: Grammar
) -> list[Statement]:
    """What the rules state that have the longest path that matches `target`.

    attach-05 §3.1. If several paths have that length, all of them count.

    Args:
        rules: (value of the record as latin-1, line).
        target: in the form of `grammar`.
        grammar: the dialect's way to read paths.
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


def in_header(values: Iterable[str]) -> list[Statement]:
    """What the Content-Usage headers of a response state (attach-05 §2)."""
    joined = ", ".join(values).strip(" \t")
    return _statements(joined.encode("utf-8", "surrogatepass"), None)


def _path_and_dictionary(value: str) -> tuple[str, str]:
    """The path of a rule, or "" if there is none, and the text after it."""
    if not value.startswith("/"):
        return "", value
    path, *rest = _WHITE_SPACE.split(value, maxsplit=1)
    return path, "".join(rest).lstrip(" \t")


def _statements(dictionary: bytes, line: int | None) -> list[Statement]:
    """What a dictionary of RFC 9651 §3.2 states (vocab-08, "Processing Algorithm").

    A dictionary that does not parse states nothing, nor does a member whose value is
    not one of the tokens y and n.
    """
    # Imported here: few files have such a line.
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
        and (preference := _PREFERENCES.get(str(value))) is not None
    ]
