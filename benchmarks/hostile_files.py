"""Files of 500 KiB and paths of 8 KiB that are designed to be slow to read.

Each family targets one way to read a robots.txt. The first column of the results
contains its name.
"""

from __future__ import annotations

from itertools import chain, count, product, repeat
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FILE_BYTES = 512_000
"""What RFC 9309 §2.5 requires every crawler to read."""

PATH_BYTES = 8_192
"""The longest target that common servers accept."""

_ALL = "User-agent: *\n"


class Family(NamedTuple):
    """One kind of hostile file: its name, its contents, and the path to look up."""

    name: str
    body: Callable[[], bytes]
    path: str


def _path(part: str) -> str:
    """A path that repeats `part`."""
    return "/" + (part * (PATH_BYTES // len(part) + 1))[: PATH_BYTES - 1]


_A_PATH = _path("a")
_AB_PATH = _path("a" * 63 + "b")
_NUMBERED = "/" + "".join(f"a{number}" for number in range(2_000))[: PATH_BYTES - 1]


def _lines(
    name: str, lines: Callable[[], Iterable[str]], path: str = _A_PATH, head: str = _ALL
) -> Family:
    """`head`, and as many of `lines` as fit."""

    def body() -> bytes:
        size, chosen = len(head), [head]
        for line in lines():
            size += len(line.encode()) + 1
            if size > FILE_BYTES:
                break
            chosen.append(line + "\n")
        return "".join(chosen).encode()

    return Family(name, body, path)


def _numbered(name: str, shape: str, path: str = _A_PATH, first: str = "") -> Family:
    """Lines of `shape`, with increasing numbers in place of "#"."""
    lines = lambda: (shape.replace("#", str(number)) for number in count())  # noqa: E731 (like the one below)
    return _lines(name, lines, path, f"{_ALL}{first}")


def _lettered(name: str, shape: str, path: str = _A_PATH) -> Family:
    """Lines of `shape`, with different letters in place of "#"."""
    return _lines(name, lambda: (shape.replace("#", each) for each in _letters()), path)


def _letters() -> Iterable[str]:
    for length in count(1):
        yield from map("".join, product("abcdefghijklmnopqrstuvwxyz", repeat=length))


def _flood(name: str, piece: str, head: str = _ALL, path: str = _A_PATH) -> Family:
    """`head`, then `piece` repeated."""
    data, room = piece.encode(), FILE_BYTES - len(head)
    return Family(
        name, lambda: head.encode() + (data * (room // len(data) + 1))[:room], path
    )


def _between_agents(name: str, line: str) -> Family:
    last = "User-agent: b"
    times = (FILE_BYTES - len(_ALL) - len(last) - 1) // (len(line) + 1)
    return _lines(name, lambda: chain(repeat(line, times), [last]))


def _many_agents_and_rules() -> Iterable[str]:
    agents = (f"User-agent: {name}" for _, name in zip(range(14_000), _letters()))  # noqa: B905 (cut)
    return chain(agents, (f"Disallow: /{number}" for number in count()))


def _allows_of_all_lengths() -> Iterable[str]:
    """One disallow rule, then needles of all pairs of lengths, short ones first."""
    pairs = ((x, total - x) for total in count(2) for x in range(1, total))
    allows = (f"Allow: /*{'a' * x}b{'a' * y}*n" for x, y in pairs)
    return chain(["Disallow: /a"], allows)


def _nearly_in_url(length: int) -> Family:
    """A URL of random letters a and b, and parts of it with another last letter."""
    rng = Random(length)
    url = "/" + "".join(rng.choices("ab", k=PATH_BYTES - 1))
    other = {"a": "b", "b": "a"}

    def lines() -> Iterator[str]:
        while True:
            end = rng.randrange(length, len(url))
            part = url[end - length + 1 : end] + other[url[end]]
            if part not in url:
                yield f"Disallow: /*{part}"

    return _lines(f"needles of {length} letters a and b, nearly in URL", lines, url)


def _in_wrong_order() -> Iterable[str]:
    """Pairs of numbers in `_NUMBERED`, the later one first."""
    pairs = (
        (late, late - back) for back in count(1) for late in range(1_000 + back, 1_850)
    )
    return (f"Disallow:/*a{late}*a{early}" for late, early in pairs)


def _far_apart(name: str, prefix: str) -> Family:
    """Rules with a number three times, which the URL has only at its two ends."""
    ends = "".join(f"{prefix}{number}" for number in range(100, 600))
    url = f"/{ends}{'a' * (PATH_BYTES - 1 - 2 * len(ends))}{ends}"
    numbers = ((100 + n % 500, 100 + n % 499) for n in count())
    lines = lambda: (  # noqa: E731 (like the one above)
        f"Disallow: /*{prefix}{one}" + f"*{prefix}{other}" * 3 for one, other in numbers
    )
    return _lines(name, lines, url)


def _nested() -> Iterable[str]:
    """Each rule is a prefix of the next; allow and disallow alternate."""
    kinds = ("Disallow", "Allow")
    return (f"{kinds[length % 2]}: /{'a' * length}" for length in count(1))


def _grid() -> Iterable[str]:
    """Runs of every pair of lengths, followed by a character that never occurs."""
    pairs = product(range(1, 100), repeat=2)
    return (f"Disallow: /*{'a' * x}*{'a' * y}*b" for x, y in pairs)


_NONE = "disallow: /\n"
_RULE = f"{_ALL}Disallow: /"
_A48, _A96 = "a" * 48, "a" * 96

# fmt: off
FAMILIES: tuple[Family, ...] = (
    # Groups.
    _lines("14,000 agents share all rules", _many_agents_and_rules),
    _numbered("groups of * with one rule each", "User-agent: *\nDisallow: /#"),
    _flood("groups of * with an empty rule", "user-agent:*\nallow:\n"),
    _flood(
        "groups of * and a by turns", "user-agent:*\nallow:\nuser-agent:a\nallow:\n"),
    _flood("groups of * with a crawl-delay", "user-agent:*\ncrawl-delay:1\nallow:/\n"),
    _lettered("groups of one agent each", "user-agent:#\nallow:"),
    _lettered("one group of user-agent lines", "User-agent: #"),
    _lettered("one group of user-agent lines with é", "user-agent:é#"),
    _flood("one group of user-agent lines without names", "uSer-agent:\n"),
    _between_agents("line feeds between two agents", ""),
    _between_agents("lines of a: between two agents", "a:"),
    _between_agents("lines of xallow: between two agents", "xallow:"),
    _flood("lines of agent:", "agent:\n"),
    _flood("one agent's name of 500 KiB", "a", "User-agent: "),
    # Wildcards.
    _lines("/*a*a*a*a*a*b, the same", lambda: repeat("Disallow: /*a*a*a*a*a*b")),
    _numbered("/*a*a*a*a*a*bN", "Disallow: /*a*a*a*a*a*b#"),
    _numbered("/*a ×9 *bN?", "Disallow: /*a*a*a*a*a*a*a*a*a*b#?"),
    _lines("rules of 4,000 stars", lambda: repeat(f"Disallow: /{'*a' * 4_000}*b")),
    _lines("rules of 8,000 stars", lambda: repeat(f"Disallow: /{'*a' * 8_000}*b")),
    _flood("one rule of stars", "*", _RULE),
    _flood("one rule of *a", "*a", _RULE),
    _lettered("short wildcards", "allow:/*#"),
    _lettered("short wildcards, all disallow", "Disallow:/*#"),
    _lettered("short wildcards with ends", "Disallow: /*#$"),
    _numbered("/*aN*b, no aN in the URL", "Disallow: /*a#*b"),
    _numbered("/*aN*b, each aN in the URL", "Disallow: /*a#*b", _NUMBERED),
    _numbered("/*aNa*aNb", "Disallow: /*a#a*a#b", _NUMBERED),
    _numbered(
        "disallow: /, then /*aa*aaa*aaa*aN$", "allow: /*aa*aaa*aaa*a#$", first=_NONE),
    _numbered("disallow: /, then /*a ×32 *N", f"allow: /*{'a' * 32}*#", first=_NONE),
    # Needles that are hard for str.find().
    _lettered("needles baaa… of letters", f"Disallow: /*#b{'a' * 40}"),
    _lettered("needles a ×96 b a", f"Disallow: /*{_A96}b#a"),
    _lettered("needles a ×48 b a ×48", f"Disallow: /*{_A48}b{_A48}#"),
    _lettered(
        "needles a ×48 N a ×48, URL with b", f"Disallow: /*#{_A48}b{_A48}", _AB_PATH),
    _lines("needles a…ba…, all lengths, below /a", _allows_of_all_lengths),
    _lines("needles a…ba…, all lengths, URL with b", _allows_of_all_lengths, _AB_PATH),
    _lines("pairs of runs of a", _grid),
    *map(_nearly_in_url, (15, 31, 64)),
    _lines("pairs in the wrong order", _in_wrong_order, _NUMBERED),
    _far_apart("far apart: short needles", "a"),
    _far_apart("far apart: long needles", "aaaaaa"),
    # Literal rules.
    _lines("each rule the start of the next", _nested),
    _numbered("literal rules", "Disallow: /a#"),
    _numbered("/a$b$cN", "Disallow: /a$b$c#"),
    # Escapes.
    _flood("one rule of %xx", "%e4", _RULE, _path("%e4")),
    _flood("one rule of é", "é", _RULE, _path("é")),
    _numbered("rules of %61, URL of %61", "Disallow: /%61%61%61#", _path("%61")),
    _lines("rules of %, URL of %", lambda: repeat("Disallow: /%%%%%%%%"), _path("%")),
    # Lines.
    _flood("line feeds", "\n"),
    _flood("carriage returns", "\r"),
    _flood("lines of #", "#\n"),
    _flood("lines of :", ":\n"),
    _flood("lines of a:", "a:\n"),
    _flood("lines of allow:", "allow:\n"),
    _flood("lines of allow b, without a colon", "allow b\n"),
    _flood("lines of two words", "abcdef b\n"),
    _lettered("lines of different unknown fields", "abc#:"),
    _numbered("lines of Sitemap", "Sitemap: http://a/#"),
    _flood("lines of Crawl-delay", "Crawl-delay: 1\n"),
    _flood("one line of #", "#"),
    _flood("one line of :", ":"),
    _flood("one line of a", "a"),
    _flood("one line of spaces", " "),
    _flood("one rule, then spaces", " ", f"{_RULE}a"),
    _flood("user-agent, then tabs", "\t", "user-agent"),
    _flood("NUL", "\0"),
    Family("0xFF", lambda: _ALL.encode() + b"\xff" * (FILE_BYTES - len(_ALL)), _A_PATH),
)
# fmt: on
