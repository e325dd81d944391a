"""Brings the path of a URL into the form in which it is dialled.

Pure. Follows the WHATWG URL Standard: tabs and line ends are dropped, backslashes
are slashes, dot segments are resolved, the fragment is cut.
"""

from __future__ import annotations

C0_AND_SPACE = "".join(map(chr, range(0x21)))
TAB_AND_LINE_ENDS = dict.fromkeys(map(ord, "\t\r\n"))
_BACKSLASH = "\\"


def dialled_path(rest: str) -> str:
    """Path and query as they are on the wire, from a URL after its authority.

    `rest` begins with "/" or a backslash; escapes are not changed.
    """
    if not rest.isprintable() or rest.endswith(" "):
        rest = rest.rstrip(C0_AND_SPACE).translate(TAB_AND_LINE_ENDS)
    if "#" in rest:
        rest = rest[: rest.index("#")]
    is_odd = _BACKSLASH in rest or "/." in rest or "%2e" in rest or "%2E" in rest
    if not is_odd:
        return rest
    path, question, query = rest.partition("?")
    return f"{without_dots(path.replace(_BACKSLASH, '/'))}{question}{query}"


def without_dots(path: str) -> str:
    """`path`, without query, as it is dialled: no "." and ".." (RFC 3986 §5.2.4)."""
    if "/." not in path and "%2e" not in path.lower():
        return path
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        dots = segment.lower().replace("%2e", ".")
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(segment)
    if path.lower().replace("%2e", ".").endswith(("/.", "/..")):
        kept.append("")
    return "/" + "/".join(kept)
