"""Files and URLs that are made to be slow to read: each of 500 KiB, asked for 8 KiB.

Each family is aimed at one way to read a robots.txt. The first column of a table of
results names them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count, product, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["FAMILIES", "FILE_BYTES", "PATH_BYTES", "Family"]

FILE_BYTES = 512_000
"""What RFC 9309 §2.5 asks every crawler to read."""

PATH_BYTES = 8_192
"""The longest target that common servers take."""

_ALL = "User-agent: *\n"


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of hostility.

    Attributes:
        name: in few words.
        body: makes the file.
        path: what is asked, from "/" on.
    """

    name: str
    body: Callable[[], bytes]
    path: str


def _filled(lines: Iterable[str], head: str = _ALL) -> bytes:
    """As many of `lines` as fit below `head`."""
    size = len(head)
    taken = [head]
    for line in lines:
        size += len(line.encode()) + 1
        if size > FILE_BYTES:
            break
        taken.append(line + "\n")
    return "".join(taken).encode()


def _flood(octets: bytes, head: str = _ALL) -> bytes:
    """`octets` again and again below `head`."""
    room = FILE_BYTES - len(head)
    return head.encode() + (octets * (room // len(octets) + 1))[:room]


def _path(part: str) -> str:
    """A path of `part` again and again."""
    return "/" + (part * (PATH_BYTES // len(part) + 1))[: PATH_BYTES - 1]


def _letters(number: int) -> str:
    """`number`, 0 or more, in letters."""
    letters = ""
    while True:
        number, place = divmod(number, 26)
        letters = chr(ord("a") + place) + letters
        if not number:
            return letters


def _many_agents_and_rules() -> bytes:
    agents = (f"User-agent: {_letters(number)}" for number in range(14_000))
    rules = (f"Disallow: /{number}" for number in count())
    return _filled(chain(agents, rules))


def _allows_of_all_lengths() -> bytes:
    """Below one disallow rule, needles of all pairs of lengths, short ones first."""
    pairs = (
        (before, total - before) for total in count(2) for before in range(1, total)
    )
    return _filled(
        chain(
            ["Disallow: /a"],
            (f"Allow: /*{'a' * x}b{'a' * y}*n" for x, y in pairs),
        )
    )


def _needles(shape: str) -> Callable[[], bytes]:
    """Lines of `shape`, with "#" in place of ever new digits."""
    return lambda: _filled(shape.replace("#", str(number)) for number in count())


def _lettered(shape: str) -> Callable[[], bytes]:
    """Lines of `shape`, with "#" in place of ever new letters."""
    return lambda: _filled(shape.replace("#", _letters(number)) for number in count())


def _nested() -> bytes:
    """Each rule the start of the next one, in turns allowed and not."""
    kinds = ("Disallow", "Allow")
    return _filled(f"{kinds[length % 2]}: /{'a' * length}" for length in count(1))


def _stars(letters: int) -> bytes:
    """Lines of one rule of thousands of stars each."""
    return _filled(repeat(f"Disallow: /{'*a' * letters}*b"))


def _after(first: str, shape: str) -> Callable[[], bytes]:
    return lambda: _filled(
        chain([first], (shape.replace("#", str(number)) for number in count()))
    )


def _grid() -> bytes:
    """Every pair of two lengths of a run, then what is not there."""
    pairs = product(range(1, 100), repeat=2)
    return _filled(f"Disallow: /*{'a' * x}*{'a' * y}*b" for x, y in pairs)


_NUMBERED = "/" + "".join(f"a{number}" for number in range(2_000))[: PATH_BYTES - 1]
_A_PATH = _path("a")
_AB_PATH = _path("a" * 63 + "b")

FAMILIES: tuple[Family, ...] = (
    # Groups.
    Family("14,000 agents share all rules", _many_agents_and_rules, _A_PATH),
    Family(
        "groups of * with one rule each",
        lambda: _filled(f"User-agent: *\nDisallow: /{number}" for number in count()),
        _A_PATH,
    ),
    Family("one group of user-agent lines", _lettered("User-agent: #"), _A_PATH),
    Family(
        "one agent's name of 500 KiB",
        lambda: _flood(b"a", "User-agent: "),
        _A_PATH,
    ),
    # Wildcards.
    Family(
        "/*a*a*a*a*a*b, the same",
        lambda: _filled(repeat("Disallow: /*a*a*a*a*a*b")),
        _A_PATH,
    ),
    Family("/*a*a*a*a*a*bN", _needles("Disallow: /*a*a*a*a*a*b#"), _A_PATH),
    Family("/*a ×9 *bN?", _needles("Disallow: /*a*a*a*a*a*a*a*a*a*b#?"), _A_PATH),
    Family("rules of 4,000 stars", lambda: _stars(4_000), _A_PATH),
    Family("rules of 8,000 stars", lambda: _stars(8_000), _A_PATH),
    Family("one rule of stars", lambda: _flood(b"*", f"{_ALL}Disallow: /"), _A_PATH),
    Family("one rule of *a", lambda: _flood(b"*a", f"{_ALL}Disallow: /"), _A_PATH),
    Family("short wildcards", _lettered("allow:/*#"), _A_PATH),
    Family("short wildcards, all disallow", _lettered("Disallow:/*#"), _A_PATH),
    Family("short wildcards with ends", _lettered("Disallow: /*#$"), _A_PATH),
    Family("/*aN*b, no aN in the URL", _needles("Disallow: /*a#*b"), _A_PATH),
    Family("/*aN*b, each aN in the URL", _needles("Disallow: /*a#*b"), _NUMBERED),
    Family("/*aNa*aNb", _needles("Disallow: /*a#a*a#b"), _NUMBERED),
    Family(
        "disallow: /, then /*aa*aaa*aaa*aN$",
        _after("disallow: /", "allow: /*aa*aaa*aaa*a#$"),
        _A_PATH,
    ),
    Family(
        "disallow: /, then /*a ×32 *N",
        _after("disallow: /", f"allow: /*{'a' * 32}*#"),
        _A_PATH,
    ),
    # Needles that str.find() finds hard.
    Family(
        "needles baaa… of letters",
        _lettered(f"Disallow: /*#b{'a' * 40}"),
        _A_PATH,
    ),
    Family(
        "needles a ×96 b a",
        _lettered(f"Disallow: /*{'a' * 96}b#a"),
        _A_PATH,
    ),
    Family(
        "needles a ×48 b a ×48",
        _lettered(f"Disallow: /*{'a' * 48}b{'a' * 48}#"),
        _A_PATH,
    ),
    Family(
        "needles a ×48 N a ×48, URL with b",
        _lettered(f"Disallow: /*#{'a' * 48}b{'a' * 48}"),
        _AB_PATH,
    ),
    Family("needles a…ba…, all lengths, below /a", _allows_of_all_lengths, _A_PATH),
    Family("needles a…ba…, all lengths, URL with b", _allows_of_all_lengths, _AB_PATH),
    Family("pairs of runs of a", _grid, _A_PATH),
    # Literal rules.
    Family("each rule the start of the next", _nested, _A_PATH),
    Family("literal rules", _needles("Disallow: /a#"), _A_PATH),
    Family("/a$b$cN", _needles("Disallow: /a$b$c#"), _A_PATH),
    # Escapes.
    Family(
        "one rule of %xx", lambda: _flood(b"%e4", f"{_ALL}Disallow: /"), _path("%e4")
    ),
    Family(
        "one rule of é", lambda: _flood("é".encode(), f"{_ALL}Disallow: /"), _path("é")
    ),
    Family("rules of %61, URL of %61", _needles("Disallow: /%61%61%61#"), _path("%61")),
    Family(
        "rules of %, URL of %",
        lambda: _filled(repeat("Disallow: /%%%%%%%%")),
        _path("%"),
    ),
    # Lines.
    Family("line feeds", lambda: _flood(b"\n"), _A_PATH),
    Family("carriage returns", lambda: _flood(b"\r"), _A_PATH),
    Family("lines of #", lambda: _flood(b"#\n"), _A_PATH),
    Family("lines of :", lambda: _flood(b":\n"), _A_PATH),
    Family("lines of a:", lambda: _flood(b"a:\n"), _A_PATH),
    Family("lines of allow:", lambda: _flood(b"allow:\n"), _A_PATH),
    Family("lines of Sitemap", _needles("Sitemap: http://a/#"), _A_PATH),
    Family("lines of Crawl-delay", lambda: _flood(b"Crawl-delay: 1\n"), _A_PATH),
    Family("one line of #", lambda: _flood(b"#"), _A_PATH),
    Family("one line of :", lambda: _flood(b":"), _A_PATH),
    Family("one line of a", lambda: _flood(b"a"), _A_PATH),
    Family("one line of spaces", lambda: _flood(b" "), _A_PATH),
    Family(
        "one rule, then spaces", lambda: _flood(b" ", f"{_ALL}Disallow: /a"), _A_PATH
    ),
    Family("user-agent, then tabs", lambda: _flood(b"\t", "user-agent"), _A_PATH),
    Family("NUL", lambda: _flood(b"\0"), _A_PATH),
    Family("0xFF", lambda: _flood(b"\xff"), _A_PATH),
)
