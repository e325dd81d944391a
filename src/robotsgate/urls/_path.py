"""The readings of a path: all the ways in which clients and servers may interpret it.

Pure. Dot segments may be resolved by the client or by the server, and clients and
servers differ in the spellings they resolve and in what a backslash means. Some clients
follow the WHATWG URL Standard; others send the path unchanged and let the server
resolve it. So a path with dot segments or backslashes has several readings, and is
allowed only if every reading is.
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
    """The path and query in `rest`, the part of a URL after its authority.

    `rest` starts with "/". Like clients, this drops the fragment, tabs and line breaks.
    """
    if not rest.isprintable() or rest.endswith(" "):
        rest = rest.rstrip(C0_AND_SPACE).translate(TAB_AND_LINE_ENDS)
    return rest[: rest.index("#")] if "#" in rest else rest


def has_readings(target: str) -> bool:
    """Whether `target` may have several readings; fast for targets with only one."""
    has_escape = "%2e" in target or "%2E" in target
    if not (has_escape or "/." in target or _BACKSLASH in target):
        return False
    return _DOTS_OR_BACKSLASH.search(target) is not None


def readings(target: str) -> tuple[str, ...]:
    """All readings of `target` (path and query), starting with `target` itself.

    Each spelling of dot segments may be resolved or not; a backslash may stay, become a
    slash, or be escaped. The readings of a reading are included, because a client may
    change the path, and then the server may change it again.
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
    """The first reading that is not allowed; if all are allowed, the first one."""
    return next((one for one in readings if not allows(one)), readings[0])


def resolved(target: str) -> str:
    """`target` as browsers send it, without backslashes or dot segments."""
    path, question, query = target.partition("?")
    path = _with_literal_dots(path.replace(_BACKSLASH, "/"))
    return f"{_without_dots(path)}{question}{query}"


def _resolutions(path: str) -> tuple[str, ...]:
    """`path` unchanged, and with its dot segments resolved in every possible way."""
    literal = _without_dots(path)
    every = _without_dots(_with_literal_dots(path))
    return path, literal, every, _without_dots(_with_literal_dots(literal))


def _with_literal_dots(path: str) -> str:
    """`path` with its escaped dot segments written as "." and ".."."""
    return _DOT_SEGMENT.sub(lambda dots: dots[0].lower().replace("%2e", "."), path)


def _without_dots(path: str) -> str:
    """`path` with its "." and ".." segments resolved (RFC 3986 §5.2.4)."""
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
