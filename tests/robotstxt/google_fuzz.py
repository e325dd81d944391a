"""Compares `Dialect.GOOGLE` with Google's own matcher on nasty input.

A case is one body with many questions, generated from one seed. A run works through
consecutive seeds:

    python -m tests.robotstxt.google_fuzz --seed 0 --decisions 1000000

Each difference is printed with its case's seed; to replay the case, pass that seed
and `--decisions 1`.
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
_FILLERS = (
    b" ", b" ", b" ", b" ", b"\t", b"*", b"a", b"%", b"%c3", b"\xc3\xa9", b"#", b"/",
    b":", b"\0", b"\x0b", b"\xa0",
)  # fmt: skip
_PLAIN_PIECES = (b"/", b"a", b"b", b"/a", b"/b", b"ab", b"*", b"$", b"/index.html")
_NASTY_BYTES = b"\0\t\n\x0b\x0c\r\x1c\x1d\x1e \x85\xa0\xef\xbb\xbf\xff#:$*%/?;aAbB-_19"
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
    """One body and the (agent, URL) pairs to match against it."""

    body: bytes
    questions: tuple[tuple[str, str], ...]


def google_allows(body: bytes, agent: str, url: str) -> bool:
    """Whether Google's own matcher allows `url`."""
    is_allowed: bool = googlebot.RobotsMatcher().OneAgentAllowedByRobots(
        body,
        agent.encode("utf-8", "surrogatepass"),
        url.encode("utf-8", "surrogatepass"),
    )
    return is_allowed


def case(seed: int) -> Case:
    """The case generated from `seed`; the same on every machine."""
    rng = Random(seed)  # noqa: S311 (reproducible, no secret)
    patterns: list[bytes] = []
    agents: list[str] = []
    shape = rng.random()
    if shape < 0.002:
        body = _crowd(rng, patterns, agents)
    elif shape < 0.04:
        body = _file_with_overlong_lines(rng, patterns, agents)
    else:
        body = _file(rng, patterns, agents)
    if rng.random() < 0.25:
        body = _mutated(rng, body)
    count = 40 if len(body) < 5_000 else 8
    questions = tuple((_agent(rng, agents), _url(rng, patterns)) for _ in range(count))
    return Case(body=body, questions=questions)


def differences(fuzz_case: Case) -> list[tuple[str, str]]:
    """The questions in a case that the two matchers answer differently."""
    robots = RobotsTxt.parse(fuzz_case.body, dialect=Dialect.GOOGLE, max_bytes=None)
    return [
        (agent, url)
        for agent, url in fuzz_case.questions
        if not google_allows(fuzz_case.body, agent, url)
        is robots.can_fetch(agent, url)
        is robots.match(agent, url).allowed
    ]


def _file(rng: Random, patterns: list[bytes], agents: list[str]) -> bytes:
    """A more or less odd file with at least one user-agent line."""
    oddity = rng.choice((0.0, 0.02, 0.1, 0.4))
    pieces = rng.choice((_PIECES, _PLAIN_PIECES))
    line_ends = _LINE_ENDS if rng.random() < 0.5 else (rng.choice(_LINE_ENDS),)
    parts = [_usual_or_odd(rng, oddity, (b"",), _BEGINNINGS)]
    for number in range(rng.randrange(2, 14)):
        is_agent = number == 0 or rng.random() < 0.25
        if is_agent:
            parts.append(_agent_line(rng, oddity, agents))
        else:
            parts.append(_line(rng, oddity, pieces, patterns))
        parts.append(_usual_or_odd(rng, oddity, line_ends, _ODD_LINE_ENDS))
    if rng.random() < 0.2:
        parts.pop()
    return b"".join(parts)


def _usual_or_odd(
    rng: Random, oddity: float, usual: tuple[bytes, ...], odd: tuple[bytes, ...]
) -> bytes:
    return rng.choice(odd if rng.random() < oddity else usual)


def _agent_line(rng: Random, oddity: float, agents: list[str]) -> bytes:
    agent = rng.choice(_AGENTS)
    agents.append(agent)
    if rng.random() < oddity:
        agent += rng.choice(_AGENT_TAILS)
    return (
        _usual_or_odd(rng, oddity, (b"User-agent", b"user-agent"), _USER_AGENT_KEYS)
        + _usual_or_odd(rng, oddity, (b": ", b":"), _SEPARATORS)
        + agent.encode("latin-1" if agent.isascii() else "utf-8")
        + _usual_or_odd(rng, oddity, (b"",), _TAILS)
    )


def _line(
    rng: Random, oddity: float, pieces: tuple[bytes, ...], patterns: list[bytes]
) -> bytes:
    value = _pattern(rng, pieces)
    kind = rng.random()
    if kind < 0.8:
        key = _usual_or_odd(
            rng, oddity, (b"Disallow", b"Allow", b"disallow"), _RULE_KEYS
        )
        patterns.append(value)
    elif kind < 0.95:
        key = rng.choice(_OTHER_KEYS)
    elif kind < 0.98:
        words = [rng.choice(_RULE_KEYS), value, *rng.choices(_TAILS, k=2)]
        return rng.choice((b" ", b"\t", b"  ", b" \t", b"\x0b")).join(words)
    else:
        return _pattern(rng, _PIECES)
    separator = _usual_or_odd(rng, oddity, (b": ", b":"), _SEPARATORS)
    return key + separator + value + _usual_or_odd(rng, oddity, (b"",), _TAILS)


def _pattern(rng: Random, pieces: tuple[bytes, ...]) -> bytes:
    start = b"/" if rng.random() < 0.9 else b""
    count = rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 8))
    return start + b"".join(rng.choice(pieces) for _ in range(count))


def _file_with_overlong_lines(
    rng: Random, patterns: list[bytes], agents: list[str]
) -> bytes:
    """A file with overlong lines whose values end at or near the cutoff point."""
    parts = [_file(rng, patterns, agents)]
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.3:
            agents.append(agent := rng.choice(_AGENTS))
            head, value = b"User-agent:", agent.encode()
        else:
            head, value = rng.choice(_RULE_KEYS) + b":", _pattern(rng, _PIECES)
            patterns.append(value)
        counted = rng.randrange(len(value) + 1)
        patterns.append(value[:counted])
        length = _LONGEST_LINE - len(head) - counted + rng.choice((0, 0, 0, -1, 1))
        filler = rng.choice(_FILLERS)
        padding = (filler * (length // len(filler) + 1))[:length]
        parts += [head, padding, value, rng.choice(_LINE_ENDS)]
    parts.append(_file(rng, patterns, agents))
    return b"".join(parts)


def _crowd(rng: Random, patterns: list[bytes], agents: list[str]) -> bytes:
    """Thousands of agents, in one group or in many."""
    parts: list[bytes] = []
    is_one_group = rng.random() < 0.5
    letters = "abcdefghij"
    for number in range(rng.randrange(1_000, 4_000)):
        name = "bot-" + "".join(letters[int(digit)] for digit in str(number))
        parts.append(f"User-agent: {name}\n".encode())
        if not is_one_group:
            pattern = _pattern(rng, _PLAIN_PIECES)
            parts.append(b"Disallow: " + pattern + b"\n")
        if rng.random() < 0.01:
            agents.append(name)
            parts.append(_line(rng, 0.1, _PLAIN_PIECES, patterns) + b"\n")
    parts.append(_file(rng, patterns, agents))
    return b"".join(parts)


def _mutated(rng: Random, body: bytes) -> bytes:
    octets = bytearray(body)
    for _ in range(rng.randrange(1, 6)):
        position = rng.randrange(len(octets) + 1)
        change = rng.randrange(4)
        if change == 0:
            octets.insert(position, rng.choice(_NASTY_BYTES))
        elif change == 1:
            del octets[position : position + rng.randrange(1, 4)]
        elif change == 2:
            octets[position : position + 1] = bytes([rng.choice(_NASTY_BYTES)])
        else:
            octets[position:position] = octets[position : position + rng.randrange(20)]
    return bytes(octets)


def _agent(rng: Random, agents: list[str]) -> str:
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(("", "*", "* ", "other", "é", "É", *_AGENTS))
    agent = rng.choice(agents or _AGENTS)
    if kind < 0.25:
        return agent + rng.choice(_AGENT_TAILS)
    if kind < 0.35:
        return rng.choice(
            (agent.upper(), agent.lower(), agent.swapcase(), agent[:-1], agent[1:])
        )
    return agent


def _url(rng: Random, patterns: list[bytes]) -> str:
    if patterns and rng.random() < 0.85:
        path = _matching_path(rng, rng.choice(patterns))
    else:
        path = _pattern(rng, _PIECES)
    text = path.decode("utf-8", "replace" if rng.random() < 0.5 else "ignore")
    kind = rng.random()
    if kind < 0.25:
        text += rng.choice(_URL_TAILS)
    elif text and kind < 0.35:
        position = rng.randrange(len(text))
        text = text[:position] + rng.choice(_URL_TAILS) + text[position + 1 :]
    if rng.random() < 0.6:
        return text
    return rng.choice(_URL_BEGINNINGS) + text


def _matching_path(rng: Random, pattern: bytes) -> bytes:
    """A path that `pattern` matches or nearly matches."""
    parts = []
    for octet in pattern:
        if octet == ord("*"):
            parts.append(rng.choice((b"", b"a", b"/", b"xyz", b"*", b"ab/", b".")))
        elif octet == ord("$"):
            parts.append(rng.choice((b"", b"", b"$", b"x")))
        elif octet >= 0x80 and rng.random() < 0.5:
            parts.append(rng.choice((b"%%%02X", b"%%%02x")) % octet)
        else:
            parts.append(bytes([octet]))
    path = b"".join(parts)
    kind = rng.random()
    if kind < 0.1:
        return path.removesuffix(b"index.html")
    if kind < 0.15:
        return path.swapcase()
    if kind < 0.2:
        return path.upper()
    return path


def main() -> int:
    """Run cases until enough decisions have been compared; return 1 if any differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    arguments = parser.parse_args()
    decisions = count = 0
    seed = arguments.seed
    while decisions < arguments.decisions:
        fuzz_case = case(seed)
        for agent, url in differences(fuzz_case):
            count += 1
            sys.stdout.write(
                f"--seed {seed} --decisions 1: agent {agent!r}, URL {url!r}, "
                f"body {fuzz_case.body!r}\n"
            )
        decisions += len(fuzz_case.questions)
        seed += 1
    sys.stdout.write(
        f"{decisions:,} decisions, seeds {arguments.seed} to {seed - 1}, "
        f"{count:,} differences\n"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
