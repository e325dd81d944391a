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

_LONGEST_LINE = 16_663

_USER_AGENT_KEYS = (
    b"useragent", b"user agent", b"user-agents", b"user-agent ", b"\tUser-Agent\t",
    b"\x0buser-agent\x0c", b"user_agent", b"u\xf3er-agent", b"\xef\xbb\xbfuser-agent",
)  # fmt: skip
_RULE_KEYS = (
    b"DISALLOW", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw",
    b"Disallowed", b" disallow", b"Dis allow", b"allowed", b" allow ", b"alow", b"foo",
    b"\x1callow", b"\x85allow", b"\x0bdisallow", b"disallow\x0c", b"disallow\xa0", b"",
    b"Sitemap", b"site-map", b"Crawl-delay", b"Request-rate", b"Noindex", b"<html>",
)  # fmt: skip
_SEPARATORS = (
    b" : ", b":\t", b" ", b"\t", b" \t ", b"::", b": :", b"", b"=", b":\x0b", b":\xa0",
    b":\x85", b"\x0b", b"\xa0", b"\0:", b":\0", b"#:", b":#",
)  # fmt: skip
_LINE_ENDS = (
    b"\r\n", b"\r", b"\n\r", b"\r\r\n", b"\n\n", b"\x0b", b"\x0c", b"\x1c", b"\x1e",
    b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\0", b"", b" \n",
)  # fmt: skip
_TAILS = (
    b" ", b"\t", b" # comment", b"#", b" \t#x", b"\x0b", b"\x0c", b"\xa0", b"\x85",
    b"\x1c", b"\0", b"\0 /", b" x", b"\t/x", b" / #", b"*", b"1", b".", b":", b"-",
)  # fmt: skip
_BEGINNINGS = (
    b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xbb\xbf", b"\xef\xbf", b"\xff\xfe", b"\0",
    b"\xef\xbb\xbf\xef\xbb\xbf", b"\n\xef\xbb\xbf", b" \xef\xbb\xbf", b"\xef\xbb\n",
)  # fmt: skip
_AGENTS = (
    "*", "a", "b", "ab", "Foo", "FooBot", "foobot-news", "foo_bot", "-", "googlebot",
    "Googlebot-Image", "MJ12bot", "008", "x.y", "a/1.0", "", "é", "\u212a", "* x",
)  # fmt: skip
_PIECES = (
    b"/", b"/", b"/", b"/", b"a", b"a", b"b", b"ab", b".php", b"?", b"&", b"=", b";",
    b"//", b"*", b"*", b"**", b"$", b"$$", b"*$", b"..", b"~", b"://", b"index.html",
    b"index.htm", b"/index.html", b"/INDEX.HTML", b"/robots.txt", b"%", b"%%", b"%2",
    b"%zz", b"%41", b"%61", b"%2f", b"%2F", b"%2a", b"%24", b"%7e", b"%c3%a9",
    b"%C3%A9", b"%e9", b"%00", b"%0a", b"%25", b"%aA", b"\xc3\xa9", b"\xe9", b"\xff",
    b" ", b"\t", b"\x0b", b"\x1c", b"\x85", b"\xa0", b"\x7f", b"\0", b"#", b"A", b"\\",
    b"[", b'"', b"\xe2\x82\xac", b"\xf0\x9f\x90\x9f",
)  # fmt: skip
_PLAIN_PIECES = (b"/", b"a", b"b", b"/a", b"/b", b"ab", b"*", b"$", b"/index.html")
_NASTY_BYTES = b"\0\t\n\x0b\x0c\r\x1c\x1d\x1e \x85\xa0\xef\xbb\xbf\xff#:$*%/?;aAbB-_19"
_URL_BEGINNINGS = (
    "http://h", "https://h:8080", "http://h/..", "//", "//h", "h", "http:/", "http:///",
    "mailto:x", "://", "a://b://c", "http://h?x", "http://h;p", "#", "/http://h", "\n",
)  # fmt: skip
_URL_TAILS = (
    "a", "/", "$", "*", "?", "?a=b", "#f", ";x", "%41", "index.html", "index.htm", "é",
    "%C3%A9", "\0a", " ", "\n", "//", "\ud800",
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
    pieces = rng.choice((_PIECES, _PLAIN_PIECES))
    agents, patterns = [], []
    parts = [_usual_or(_BEGINNINGS, b"", rng)]
    oddity = rng.choice((0.0, 0.02, 0.1, 0.4))
    for number in range(rng.randrange(2, 14)):
        if is_agent := number == 0 or rng.random() < 0.25:
            agents.append(rng.choice(_AGENTS))
            value = agents[-1].encode()
        else:
            patterns.append(value := _pattern(rng, pieces))
        line = _line(rng, value, oddity=oddity, is_agent=is_agent)
        if rng.random() < 0.01:
            line = _overlong(rng, line, value)
        parts += [line, _usual_or(_LINE_ENDS, b"\n", rng, oddity)]
    body = b"".join(parts)
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


def _usual_or(
    odd: tuple[bytes, ...], usual: bytes, rng: Random, oddity: float = 0.1
) -> bytes:
    return rng.choice(odd) if rng.random() < oddity else usual


def _line(rng: Random, value: bytes, *, oddity: float, is_agent: bool) -> bytes:
    if is_agent:
        key = _usual_or(_USER_AGENT_KEYS, b"User-agent", rng, oddity)
    else:
        usual = rng.choice((b"Disallow", b"Allow", b"disallow"))
        key = _usual_or(_RULE_KEYS, usual, rng, oddity)
    separator = _usual_or(_SEPARATORS, b": ", rng, oddity)
    return key + separator + value + _usual_or(_TAILS, b"", rng, oddity)


def _pattern(rng: Random, pieces: tuple[bytes, ...]) -> bytes:
    start = b"/" if rng.random() < 0.9 else b""
    count = rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 8))
    return start + b"".join(rng.choice(pieces) for _ in range(count))


def _overlong(rng: Random, line: bytes, value: bytes) -> bytes:
    """A line so long that the value in it ends at or near the point of the cut."""
    head, _, rest = line.partition(value) if value else (line, b"", b"")
    counted = rng.randrange(len(value) + 1)
    filler = rng.choice((b" ", b" ", b"\t", b"*", b"%", b"\xc3\xa9", b"#", b"\0", b"a"))
    length = _LONGEST_LINE - len(head) - counted + rng.choice((0, 0, 0, -1, 1))
    return head + (filler * length)[:length] + value + rest


def _mutated(rng: Random, body: bytes) -> bytes:
    octets = bytearray(body)
    for _ in range(rng.randrange(1, 6)):
        position = rng.randrange(len(octets) + 1)
        nasty = bytes([rng.choice(_NASTY_BYTES)])
        again = octets[position : position + rng.randrange(20)]
        end = position + rng.randrange(4)
        octets[position:end] = rng.choice((b"", nasty, again))
    return bytes(octets)


def _agent(rng: Random, agents: list[str]) -> str:
    agent = rng.choice((*agents, *agents, rng.choice(_AGENTS)))
    variants = (agent, agent, agent.swapcase(), agent[:-1], f"{agent}/2.1; +http://x/y")
    return rng.choice(variants)


def _url(rng: Random, patterns: list[bytes]) -> str:
    if patterns and rng.random() < 0.85:
        path = _matching_path(rng, rng.choice(patterns))
    else:
        path = _pattern(rng, _PIECES)
    url = path.decode("utf-8", rng.choice(("replace", "ignore")))
    if rng.random() < 0.3:
        position = rng.randrange(len(url) + 1)
        url = url[:position] + rng.choice(_URL_TAILS) + url[position + 1 :]
    return rng.choice(_URL_BEGINNINGS) + url if rng.random() < 0.3 else url


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
    variants = (path, path, path, path.removesuffix(b"index.html"), path.swapcase())
    return rng.choice(variants)


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
