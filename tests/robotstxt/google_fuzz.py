"""Compares `Dialect.GOOGLE` with Google's own matcher on nasty input.

A case is one body with many questions, and is made of one seed; a run takes the
seeds in turn from the first on:

    python -m tests.robotstxt.google_fuzz --seed 0 --decisions 1000000

Each difference is printed with the seed of its case; `--decisions 1` with that
seed replays the case.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from random import Random

from jwm.robotstxt import googlebot  # type: ignore[import-untyped]  # C++ inside

from robotsgate.robotstxt import Dialect, RobotsTxt

__all__ = ["Case", "case", "differences", "google_allows"]

_LONGEST_LINE = 16_663

_USER_AGENT_KEYS = (
    b"User-agent", b"user-agent", b"USER-AGENT", b"useragent", b"UserAgent",
    b"user agent", b"user-agents", b"user-agent ", b" user-agent", b"\tUser-Agent\t",
    b"\x0buser-agent\x0c", b"user--agent", b"user_agent", b"u\xf3er-agent",
)  # fmt: skip
_RULE_KEYS = (
    b"Disallow", b"disallow", b"DISALLOW", b"dissallow", b"dissalow", b"disalow",
    b"diasllow", b"disallaw", b"Disallowed", b"disallow\t", b" disallow", b"Dis allow",
    b"Allow", b"allow", b"ALLOW", b"allowed", b" allow ", b"alow", b"\x1callow",
    b"\xa0disallow", b"\x85allow", b"\x0bdisallow", b"disallow\x0c", b"disallow\xa0",
    b"alloW", b"Disallow", b"Allow", b"disallow", b"allow",
)  # fmt: skip
_OTHER_KEYS = (
    b"Sitemap", b"site-map", b"SITEMAP", b"Crawl-delay", b"crawl-delay",
    b"Request-rate", b"Host", b"Noindex", b"Clean-param", b"", b"foo", b"<html>",
    b"\xef\xbb\xbfuser-agent", b"content-signal",
)  # fmt: skip
_SEPARATORS = (
    b":", b": ", b" : ", b":\t", b" ", b"\t", b"  ", b" \t ", b"::", b": :", b"",
    b"=", b":\x0b", b":\x0c", b":\xa0", b":\x85", b":\x1c", b"\x0b", b"\xa0", b"\0:",
    b":\0", b"#:", b":#",
)  # fmt: skip
_LINE_ENDS = (b"\n", b"\r\n", b"\r")
_ODD_LINE_ENDS = (
    b"\n\r", b"\r\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\x0b", b"\x0c", b"\x1c",
    b"\x1d", b"\x1e", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\0", b"", b" \n",
)  # fmt: skip
_TAILS = (
    b"", b"", b"", b"", b"", b"", b" ", b"\t", b" # comment", b"#", b" \t#x", b"\x0b",
    b"\x0c", b"\xa0", b"\x85", b"\x1c", b"\0", b"\0 /", b" x", b"\t/x", b" / #",
)  # fmt: skip
_BEGINNINGS = (
    b"", b"", b"", b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xbb\xbf", b"\xbf",
    b"\xef\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xef\xbb\xbf", b"\xff\xfe",
    b"\xfe\xff", b"\n\xef\xbb\xbf", b" \xef\xbb\xbf", b"\0", b"\r", b"\n", b"\x0c",
    b"\xef\xbb\n", b"\xef\nuser-agent:*", b"\xef\xbbu",
)  # fmt: skip
_AGENTS = (
    "*", "a", "b", "ab", "Foo", "FooBot", "foobot-news", "foo_bot", "-", "_", "bot",
    "googlebot", "Googlebot-Image", "MJ12bot", "008", "e", "f", "x.y", "K",
)  # fmt: skip
_AGENT_TAILS = (
    "", "", "", "", "/1.0", "/2.1; +http://x/y", " ", "*", "1", ".", " bot", "\t", "#",
    "é", "\u212a", "\0", "\x0b", "\xa0", ":", "-", "(compatible)", "\x85",
)  # fmt: skip
_PIECES = (
    b"/", b"/", b"/", b"/", b"a", b"a", b"b", b"c", b"ab", b"fish", b".php", b"?", b"&",
    b"=", b";", b"//", b"*", b"*", b"*", b"**", b"$", b"$", b"$$", b"*$", b"$*", b".",
    b"..", b"~", b":", b"://", b"@", b"+", b"index.html", b"index.htm",
    b"/index.html", b"/index.html?", b"/index.htmx", b"/INDEX.HTML",
    b"/robots.txt", b"%", b"%%", b"%2", b"%zz", b"%41", b"%61", b"%2f", b"%2F", b"%2a",
    b"%2A", b"%24", b"%7e", b"%7E", b"%c3%a9", b"%C3%A9", b"%c3%A9", b"%e9", b"%E9",
    b"%00", b"%0a", b"%25", b"%aA", b"%Aa", b"%aG", b"\xc3\xa9", b"\xe9", b"\xff",
    b"\xc3", b"\x80", b" ", b"  ", b"\t", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xa0",
    b"\x7f", b"\x01", b"\0", b"#", b"A", b"B", b"\\", b"[", b"|", b'"', b"'",
    b"\xe2\x82\xac", b"\xf0\x9f\x90\x9f", b"\xef\xbb\xbf",
)  # fmt: skip
_FILLINGS = (
    b" ", b" ", b" ", b" ", b"\t", b"*", b"a", b"%", b"%c3", b"\xc3\xa9", b"#", b"/",
    b":", b"\0", b"\x0b", b"\xa0",
)  # fmt: skip
_PLAIN_PIECES = (b"/", b"a", b"b", b"/a", b"/b", b"ab", b"*", b"$", b"/index.html")
_NASTY_OCTETS = b"\0\t\n\x0b\x0c\r\x1c\x1d\x1e \x85\xa0\xef\xbb\xbf\xff#:$*%/?;aAbB-_19"
_URL_BEGINNINGS = (
    "", "", "", "", "http://h", "http://h", "https://h:8080", "http://h/..", "//",
    "//h", "h", "http:/", "http:///", "mailto:x", "://", "a://b://c", "http://h?x",
    "http://h;p", "http://u:p@h", "#", "http://h#", "HTTP://H", "/http://h", "?://",
    "http://é", "\xa0", " ", "\n", "http://h\0",
)  # fmt: skip
_URL_TAILS = (
    "", "", "", "", "", "a", "/", "$", "*", "?", "?a=b", "#f", "#", ";x", "%41",
    "index.html", "index.htm", "é", "%C3%A9", "\0", "\0a", " ", "\n", "//", "\ud800",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One body, and the pairs (agent, URL) that are asked of it."""

    body: bytes
    questions: tuple[tuple[str, str], ...]


def google_allows(body: bytes, agent: str, url: str) -> bool:
    """The answer of Google's own matcher."""
    is_allowed: bool = googlebot.RobotsMatcher().OneAgentAllowedByRobots(
        body,
        agent.encode("utf-8", "surrogatepass"),
        url.encode("utf-8", "surrogatepass"),
    )
    return is_allowed


def case(seed: int) -> Case:
    """The case that `seed` stands for; the same on every machine."""
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)
    patterns: list[bytes] = []
    agents: list[str] = []
    shape = chance.random()
    if shape < 0.002:
        body = _crowd(chance, patterns, agents)
    elif shape < 0.04:
        body = _file_with_overlong_lines(chance, patterns, agents)
    else:
        body = _file(chance, patterns, agents)
    if chance.random() < 0.25:
        body = _mutated(chance, body)
    count = 40 if len(body) < 5_000 else 8
    questions = tuple(
        (_agent(chance, agents), _url(chance, patterns)) for _ in range(count)
    )
    return Case(body=body, questions=questions)


def differences(one: Case) -> list[tuple[str, str]]:
    """The questions of a case that are answered differently."""
    robots = RobotsTxt.parse(one.body, dialect=Dialect.GOOGLE, max_bytes=None)
    return [
        (agent, url)
        for agent, url in one.questions
        if not google_allows(one.body, agent, url)
        is robots.can_fetch(agent, url)
        is robots.match(agent, url).allowed
    ]


def _file(chance: Random, patterns: list[bytes], agents: list[str]) -> bytes:
    """A file that is more or less odd, with at least one user-agent line."""
    oddity = chance.choice((0.0, 0.02, 0.1, 0.4))
    pieces = chance.choice((_PIECES, _PLAIN_PIECES))
    line_ends = _LINE_ENDS if chance.random() < 0.5 else (chance.choice(_LINE_ENDS),)
    parts = [_odd(chance, oddity, (b"",), _BEGINNINGS)]
    for number in range(chance.randrange(2, 14)):
        is_agent = number == 0 or chance.random() < 0.25
        if is_agent:
            parts.append(_agent_line(chance, oddity, agents))
        else:
            parts.append(_line(chance, oddity, pieces, patterns))
        parts.append(_odd(chance, oddity, line_ends, _ODD_LINE_ENDS))
    if chance.random() < 0.2:
        parts.pop()
    return b"".join(parts)


def _odd(
    chance: Random, oddity: float, usual: tuple[bytes, ...], odd: tuple[bytes, ...]
) -> bytes:
    return chance.choice(odd if chance.random() < oddity else usual)


def _agent_line(chance: Random, oddity: float, agents: list[str]) -> bytes:
    agent = chance.choice(_AGENTS)
    agents.append(agent)
    if chance.random() < oddity:
        agent += chance.choice(_AGENT_TAILS)
    return (
        _odd(chance, oddity, (b"User-agent", b"user-agent"), _USER_AGENT_KEYS)
        + _odd(chance, oddity, (b": ", b":"), _SEPARATORS)
        + agent.encode("latin-1" if agent.isascii() else "utf-8")
        + _odd(chance, oddity, (b"",), _TAILS)
    )


def _line(
    chance: Random, oddity: float, pieces: tuple[bytes, ...], patterns: list[bytes]
) -> bytes:
    value = _pattern(chance, pieces)
    kind = chance.random()
    if kind < 0.8:
        key = _odd(chance, oddity, (b"Disallow", b"Allow", b"disallow"), _RULE_KEYS)
        patterns.append(value)
    elif kind < 0.95:
        key = chance.choice(_OTHER_KEYS)
    elif kind < 0.98:
        words = [chance.choice(_RULE_KEYS), value, *chance.choices(_TAILS, k=2)]
        return chance.choice((b" ", b"\t", b"  ", b" \t", b"\x0b")).join(words)
    else:
        return _pattern(chance, _PIECES)
    separator = _odd(chance, oddity, (b": ", b":"), _SEPARATORS)
    return key + separator + value + _odd(chance, oddity, (b"",), _TAILS)


def _pattern(chance: Random, pieces: tuple[bytes, ...]) -> bytes:
    start = b"/" if chance.random() < 0.9 else b""
    count = chance.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 8))
    return start + b"".join(chance.choice(pieces) for _ in range(count))


def _file_with_overlong_lines(
    chance: Random, patterns: list[bytes], agents: list[str]
) -> bytes:
    """A file in which things happen about where an overlong line is cut."""
    parts = [_file(chance, patterns, agents)]
    for _ in range(chance.randrange(1, 4)):
        if chance.random() < 0.3:
            agents.append(agent := chance.choice(_AGENTS))
            head, value = b"User-agent:", agent.encode()
        else:
            head, value = chance.choice(_RULE_KEYS) + b":", _pattern(chance, _PIECES)
            patterns.append(value)
        counted = chance.randrange(len(value) + 1)
        patterns.append(value[:counted])
        length = _LONGEST_LINE - len(head) - counted + chance.choice((0, 0, 0, -1, 1))
        filling = chance.choice(_FILLINGS)
        stuffing = (filling * (length // len(filling) + 1))[:length]
        parts += [head, stuffing, value, chance.choice(_LINE_ENDS)]
    parts.append(_file(chance, patterns, agents))
    return b"".join(parts)


def _crowd(chance: Random, patterns: list[bytes], agents: list[str]) -> bytes:
    """Thousands of agents, in one group or in many."""
    parts: list[bytes] = []
    is_one_group = chance.random() < 0.5
    letters = "abcdefghij"
    for number in range(chance.randrange(1_000, 4_000)):
        name = "bot-" + "".join(letters[int(digit)] for digit in str(number))
        parts.append(f"User-agent: {name}\n".encode())
        if not is_one_group:
            pattern = _pattern(chance, _PLAIN_PIECES)
            parts.append(b"Disallow: " + pattern + b"\n")
        if chance.random() < 0.01:
            agents.append(name)
            parts.append(_line(chance, 0.1, _PLAIN_PIECES, patterns) + b"\n")
    parts.append(_file(chance, patterns, agents))
    return b"".join(parts)


def _mutated(chance: Random, body: bytes) -> bytes:
    octets = bytearray(body)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(octets) + 1)
        change = chance.randrange(4)
        if change == 0:
            octets.insert(place, chance.choice(_NASTY_OCTETS))
        elif change == 1:
            del octets[place : place + chance.randrange(1, 4)]
        elif change == 2:
            octets[place : place + 1] = bytes([chance.choice(_NASTY_OCTETS)])
        else:
            octets[place:place] = octets[place : place + chance.randrange(20)]
    return bytes(octets)


def _agent(chance: Random, agents: list[str]) -> str:
    kind = chance.random()
    if kind < 0.15:
        return chance.choice(("", "*", "* ", "other", "é", "É", *_AGENTS))
    agent = chance.choice(agents or _AGENTS)
    if kind < 0.25:
        return agent + chance.choice(_AGENT_TAILS)
    if kind < 0.35:
        return chance.choice(
            (agent.upper(), agent.lower(), agent.swapcase(), agent[:-1], agent[1:])
        )
    return agent


def _url(chance: Random, patterns: list[bytes]) -> str:
    if patterns and chance.random() < 0.85:
        path = _fitting(chance, chance.choice(patterns))
    else:
        path = _pattern(chance, _PIECES)
    text = path.decode("utf-8", "replace" if chance.random() < 0.5 else "ignore")
    kind = chance.random()
    if kind < 0.25:
        text += chance.choice(_URL_TAILS)
    elif text and kind < 0.35:
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice(_URL_TAILS) + text[place + 1 :]
    if chance.random() < 0.6:
        return text
    return chance.choice(_URL_BEGINNINGS) + text


def _fitting(chance: Random, pattern: bytes) -> bytes:
    """A path that the pattern matches, or nearly."""
    parts = []
    for octet in pattern:
        if octet == ord("*"):
            parts.append(chance.choice((b"", b"a", b"/", b"xyz", b"*", b"ab/", b".")))
        elif octet == ord("$"):
            parts.append(chance.choice((b"", b"", b"$", b"x")))
        elif octet >= 0x80 and chance.random() < 0.5:
            parts.append(chance.choice((b"%%%02X", b"%%%02x")) % octet)
        else:
            parts.append(bytes([octet]))
    path = b"".join(parts)
    kind = chance.random()
    if kind < 0.1:
        return path.removesuffix(b"index.html")
    if kind < 0.15:
        return path.swapcase()
    if kind < 0.2:
        return path.upper()
    return path


def main() -> int:
    """Run cases until enough decisions were compared; 1 if any differs."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--decisions", type=int, default=1_000_000)
    chosen = arguments.parse_args()
    decisions = count = 0
    seed = chosen.seed
    while decisions < chosen.decisions:
        one = case(seed)
        for agent, url in differences(one):
            count += 1
            sys.stdout.write(
                f"--seed {seed} --decisions 1: agent {agent!r}, URL {url!r}, "
                f"body {one.body!r}\n"
            )
        decisions += len(one.questions)
        seed += 1
    sys.stdout.write(
        f"{decisions:,} decisions, seeds {chosen.seed} to {seed - 1}, "
        f"{count:,} differences\n"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
