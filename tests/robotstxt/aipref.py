"""A slow, plain reader of Content-Usage that follows the AIPREF drafts to the letter.

draft-ietf-aipref-attach-05 (2026-08-19) and draft-ietf-aipref-vocab-08 (2026-09-13).
Only parsing the dictionaries is left to a library.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import http_sf

from tests.robotstxt.reference import (
    allows,
    matches,
    pattern_spelling,
    target_spelling,
)

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


def random_file(rng: Random) -> bytes:
    """A few groups, in which most lines are about usage."""
    lines = [b"User-agent: ", rng.choice(_TOKENS), b"\n"]
    for _ in range(rng.randrange(12)):
        field = rng.choice(_FIELDS)
        lines += [field, b":", rng.choice(_SPACES)]
        if field.strip().lower() == b"user-agent":
            lines.append(rng.choice(_TOKENS))
        elif field.lower().endswith(b"allow"):
            lines.append(rng.choice((b"", *_PATHS)))
        else:
            if rng.random() < 0.6:
                lines += [rng.choice(_PATHS), rng.choice(_SPACES)]
            lines.append(rng.choice(_DICTIONARIES))
        lines.append(rng.choice(_ENDS))
    return b"".join(lines)


def random_path(rng: Random) -> str:
    """A path, sometimes with a query."""
    parts = ("/", "a", "b", "/a", "%61", "é", "?", "%FF", "$", "*")
    path = "/" + "".join(rng.choices(parts, k=rng.randrange(5)))
    return rng.choice((path, path, path, "/robots.txt"))


def preferences(file: bytes, agent: str, path: str) -> dict[str, str]:
    """Each category's preference, from `agent`'s group or from the fallback group."""
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
            for name in agents:
                rules[name].append((field == b"allow", pattern_spelling(value)))
        elif field == b"content-usage":
            for name in agents:
                usages.setdefault(name, []).append(value)
    target = target_spelling(path.encode())
    group = agent if agent in rules else "*"
    may_be_crawled = allows(rules.get(group, []), target) or path == "/robots.txt"
    return _combined(usages.get(group, []) if may_be_crawled else [], target)


def _combined(values: list[bytes], target: str) -> dict[str, str]:
    paths = [
        b"" if value[:1] != b"/" else re.split(b"[ \t]", value)[0] for value in values
    ]
    lengths = [
        len(pattern_spelling(path)) if matches(pattern_spelling(path), target) else -1
        for path in paths
    ]
    statements = [
        _parse_dictionary(value[len(path) :].strip(b" \t"))
        for path, value, length in zip(paths, values, lengths, strict=True)
        if length == max(lengths) >= 0
    ]
    result = {}
    for category in ("train-ai", "search"):
        stated = {statement.get(category, "unknown") for statement in statements}
        order = ("disallow", "allow", "unknown")
        result[category] = next((word for word in order if word in stated), "unknown")
    return result


def _parse_dictionary(dictionary: bytes) -> dict[str, str]:
    try:
        parsed = http_sf.parse(dictionary, tltype="dictionary")
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
