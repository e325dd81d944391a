"""Reads the path of a URL in each way in which clients and servers may read it.

Pure. Clients and servers differ in who resolves dot segments, in which spelling, and
in what a backslash is. Some read as the WHATWG URL Standard says, others send a path
as it was given, and leave it to the server. So a path with dot segments or backslashes
has several readings, and may be fetched only if each of them may be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BACKSLASH = "\\"
C0_AND_SPACE = "".join(map(chr, range(0x21)))
TAB_AND_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))


def target_of(rest: str) -> str:
    """Path and query from a URL after its authority, without fragment.

    `rest` begins with "/". As clients do, this drops tabs and line ends.
    """
    if not rest.isprintable() or rest.endswith(" "):
        rest = rest.rstrip(C0_AND_SPACE).translate(TAB_AND_LINE_ENDS)
    return rest[: rest.index("#")] if "#" in rest else rest


def readings(target: str) -> tuple[str, ...]:
    """`target`, a path with its query, in each of its readings, first as it is.

    Each spelling of dot segments may be resolved or not; a backslash may stay, become
    a slash, or be escaped. The readings of a reading count, too: a client may change
    the path first, and then the server.
    """
    has_escape = "%2e" in target or "%2E" in target
    if not (has_escape or "/." in target or _BACKSLASH in target):
        return (target,)
    path, question, query = target.partition("?")
    paths = [path]
    for one in paths:  # which grows
        for other in (
            one.replace(_BACKSLASH, "/"),
            one.replace(_BACKSLASH, "%5C"),
            without_dots(one, escaped=False),
            without_dots(one),
        ):
            if other not in paths:
                paths.append(other)
    return tuple([f"{one}{question}{query}" for one in paths])


def decisive(readings: Sequence[str], allows: Callable[[str], bool]) -> str:
    """The first of `readings` that `allows` refuses; if it refuses none, the first."""
    return next((one for one in readings if not allows(one)), readings[0])


def resolved(target: str) -> str:
    """`target` as browsers send it: with slashes only, and without dot segments."""
    path, question, query = target.partition("?")
    return f"{without_dots(path.replace(_BACKSLASH, '/'))}{question}{query}"


def without_dots(path: str, *, escaped: bool = True) -> str:
    """`path`, without query, with "." and ".." resolved (RFC 3986 §5.2.4).

    Also those that are written with `%2e`, if `escaped`.
    """
    if "/." not in path and "%2e" not in path.lower():
        return path
    kept: list[str] = []
    dots = ""
    for segment in path.split("/")[1:]:
        dots = segment.lower().replace("%2e", ".") if escaped else segment
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(segment)
    if dots in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
