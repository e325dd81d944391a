"""Reads the path of a URL in each way in which clients and servers may read it.

Pure. Clients and servers differ in who resolves dot segments, in which spelling, and
in what a backslash is. Some read as the WHATWG URL Standard says, others send a path
as it was given, and leave it to the server. So a path with dot segments or backslashes
has several readings, and may be fetched only if each of them may be.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BACKSLASH = "\\"
_DOT_SEGMENT = re.compile(r"(?<=/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
_DOTS_OR_BACKSLASH = re.compile(r"\\|/(?:\.|%2e){1,2}(?:[/?]|$)", re.IGNORECASE)
C0_AND_SPACE = "".join(map(chr, range(0x21)))
TAB_AND_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))


def target_of(rest: str) -> str:
    """Path and query from a URL after its authority, without fragment.

    `rest` begins with "/". As clients do, this drops tabs and line ends.
    """
    if not rest.isprintable() or rest.endswith(" "):
        rest = rest.rstrip(C0_AND_SPACE).translate(TAB_AND_LINE_ENDS)
    return rest[: rest.index("#")] if "#" in rest else rest


def has_readings(target: str) -> bool:
    """Whether `target` may have several readings; quick for those that have one."""
    has_escape = "%2e" in target or "%2E" in target
    if not (has_escape or "/." in target or _BACKSLASH in target):
        return False
    return _DOTS_OR_BACKSLASH.search(target) is not None


def readings(target: str) -> tuple[str, ...]:
    """`target`, a path with its query, in each of its readings, first as it is.

    Each spelling of dot segments may be resolved or not; a backslash may stay, become
    a slash, or be escaped. The readings of a reading count, too: a client may change
    the path first, and then the server.
    """
    if not has_readings(target):
        return (target,)
    path, question, query = target.partition("?")
    paths = dict.fromkeys(_resolutions(path))
    if _BACKSLASH in path:
        for one in [*paths]:
            paths |= dict.fromkeys(_resolutions(one.replace(_BACKSLASH, "/")))
            paths[one.replace(_BACKSLASH, "%5C")] = None
    return tuple([f"{one}{question}{query}" for one in paths])


def decisive(readings: Sequence[str], allows: Callable[[str], bool]) -> str:
    """The first of `readings` that `allows` refuses; if it refuses none, the first."""
    return next((one for one in readings if not allows(one)), readings[0])


def resolved(target: str) -> str:
    """`target` as browsers send it: with slashes only, and without dot segments."""
    path, question, query = target.partition("?")
    path = _with_literal_dots(path.replace(_BACKSLASH, "/"))
    return f"{_without_dots(path)}{question}{query}"


def _resolutions(path: str) -> tuple[str, ...]:
    """`path` as it is, and after each way to resolve its dot segments."""
    literal = _without_dots(path)
    every = _without_dots(_with_literal_dots(path))
    return path, literal, every, _without_dots(_with_literal_dots(literal))


def _with_literal_dots(path: str) -> str:
    """`path` with its escaped dot segments written as "." and ".."."""
    return _DOT_SEGMENT.sub(lambda dots: dots[0].lower().replace("%2e", "."), path)


def _without_dots(path: str) -> str:
    """`path` with its "." and ".." resolved (RFC 3986 §5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
