"""Reads Content-Usage word by word as the drafts of AIPREF say, plainly and slowly.

draft-ietf-aipref-attach-05 (2026-08-19) and draft-ietf-aipref-vocab-08 (2026-09-13).
Only the dictionaries are left to a library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import http_sf

from tests.robotstxt.reference import allows, matches, pattern_spelling, spelling

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.robotstxt.reference import Record

__all__ = ["preferences", "random_file", "random_path"]

_FIELDS = (
    b"Content-Usage", b"content-usage", b" CONTENT-USAGE ", b"Content-Usage",
    b"User-agent", b"user-agent", b"Disallow", b"Allow", b"Content-Signal", b"x",
)  # fmt: skip
_TOKENS = (b"a", b"b", b"*", b"c")
_PATHS = (
    b"/", b"/a", b"/a/", b"/%61", b"/a*", b"/*", b"/*b", b"/a$", b"/\xc3\xa9",
    b"/%c3%A9", b"/a/b", b"/a?", b"/\xff", b"/%", b"/*a*b", b"//",
)  # fmt: skip
_DICTIONARIES = (
    b"train-ai=n", b"train-ai=y", b"search=n", b"search=y", b"train-ai=n, search=y",
    b"train-ai=y,search=n", b"train-ai", b'train-ai="n"', b"Train-AI=n", b"train-ai=n,",
    b"train-ai=n;x=1", b"train-ai=y, train-ai=n", b"train-ai=n, train-ai=?0", b"",
    b"train-ai=(n y)", b"search=maybe", b"other=n", b"search=n \xc3\xa9", b"train-ai=N",
    b"train-ai=n\tsearch=y", b"train-ai =n", b"search=y;q=0.5, train-ai=n",
)  # fmt: skip
_SPACES = (b" ", b"", b"\t", b"  ")
_ENDS = (b"\n", b"\r\n", b"\r", b" # comment\n", b"#\n", b"\n\n")


def random_file(chance: Random) -> bytes:
    """A few groups, most lines of them about usage."""
    lines = [b"User-agent: ", chance.choice(_TOKENS), b"\n"]
    for _ in range(chance.randrange(12)):
        field = chance.choice(_FIELDS)
        lines += [field, b":", chance.choice(_SPACES)]
        if field.strip().lower() == b"user-agent":
            lines.append(chance.choice(_TOKENS))
        elif field.lower().endswith(b"allow"):
            lines.append(chance.choice((b"", *_PATHS)))
        else:
            if chance.random() < 0.6:
                lines += [chance.choice(_PATHS), chance.choice(_SPACES)]
            lines.append(chance.choice(_DICTIONARIES))
        lines.append(chance.choice(_ENDS))
    return b"".join(lines)


def random_path(chance: Random) -> str:
    """The path and query of a URL."""
    parts = ("/", "a", "b", "/a", "%61", "é", "?", "%FF", "$", "*")
    path = "/" + "".join(chance.choices(parts, k=chance.randrange(5)))
    return chance.choice((path, path, path, "/robots.txt"))


def preferences(file: bytes, agent: str, path: str) -> dict[str, str]:
    """The preference of each category, for the group of `agent` or that of "*"."""
    rules: dict[str, list[Record]] = {}
    usages: dict[str, list[bytes]] = {}
    agents: list[str] = []
    is_open = False
    for line in re.split(b"[\r\n]", file):
        record, _, _ = line.partition(b"#")
        label, colon, value = record.partition(b":")
        field, value = label.strip(b" \t").lower(), value.strip(b" \t")
        if not colon:
            continue
        if field == b"user-agent":
            agents = [*agents, value.decode()] if is_open else [value.decode()]
            rules.setdefault(agents[-1], [])
            is_open = True
        elif field in {b"allow", b"disallow"}:
            is_open = False
            for one in agents:
                rules[one].append((field == b"allow", pattern_spelling(value)))
        elif field == b"content-usage":
            for one in agents:
                usages.setdefault(one, []).append(value)
    target = spelling(path.encode())
    group = agent if agent in rules else "*"
    may_be_crawled = allows(rules.get(group, []), target) or path == "/robots.txt"
    return _of_rules(usages.get(group, []) if may_be_crawled else [], target)


def _of_rules(values: list[bytes], target: str) -> dict[str, str]:
    paths = [
        b"" if value[:1] != b"/" else re.split(b"[ \t]", value)[0] for value in values
    ]
    lengths = [
        len(pattern_spelling(path)) if matches(pattern_spelling(path), target) else -1
        for path in paths
    ]
    statements = [
        _of_dictionary(value[len(path) :].strip(b" \t"))
        for path, value, length in zip(paths, values, lengths, strict=True)
        if length == max(lengths) >= 0
    ]
    result = {}
    for category in ("train-ai", "search"):
        stated = {one.get(category, "unknown") for one in statements}
        order = ("disallow", "allow", "unknown")
        result[category] = next((one for one in order if one in stated), "unknown")
    return result


def _of_dictionary(octets: bytes) -> dict[str, str]:
    try:
        parsed = http_sf.parse(octets, tltype="dictionary")
    except http_sf.StructuredFieldError:
        return {}
    words = {"y": "allow", "n": "disallow"}
    members = cast("Mapping[str, tuple[object, object]]", parsed)
    return {
        label: words.get(str(value), "unknown")
        if isinstance(value, http_sf.Token)
        else "unknown"
        for label, (value, _) in members.items()
    }
