"""The other parsers, each asked as its own documentation says.

They are imported when they are asked for, so that the suite compares with those that
are installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata
from platform import python_version
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from cachetools import TLRUCache

from benchmarks.workload import AGENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Kept: TypeAlias = Any
"""What a peer keeps of a file between two questions: each has its own type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A parser of robots.txt files.

    Attributes:
        name: with its version.
        read: what is kept of a file between two questions.
        ask: asks about pairs of what is kept and a URL: a loop as a user writes it.
        keeps_rules: whether a file is parsed once, not again for each question.
    """

    name: str
    read: Callable[[bytes], Kept]
    ask: Callable[[Iterable[tuple[Kept, str]]], Awaitable[None]]
    keeps_rules: bool = True


def installed_peers() -> dict[str, Peer]:
    """Those that can be imported here, by their keys."""
    peers = {}
    for key, peer in _PEERS.items():
        try:
            peers[key] = peer()
        except ImportError:
            continue
    return peers


def _protego() -> Peer:
    parse = import_module("protego").Protego.parse

    async def ask(asked: Iterable[tuple[Kept, str]]) -> None:
        for kept, url in asked:
            kept.can_fetch(url, AGENT)

    return Peer(name=_named("protego"), read=lambda body: parse(text(body)), ask=ask)


async def _ask_agent_first(asked: Iterable[tuple[Kept, str]]) -> None:
    for kept, url in asked:
        kept.can_fetch(AGENT, url)


def _urllib() -> Peer:
    def read(body: bytes) -> RobotFileParser:
        parser = RobotFileParser()
        parser.parse(text(body).splitlines())
        return parser

    name = f"urllib.robotparser of Python {python_version()}"
    return Peer(name=name, read=read, ask=_ask_agent_first)


def _robotspy() -> Peer:
    from_string = import_module("robots").RobotsParser.from_string
    return Peer(
        name=_named("robotspy"),
        read=lambda body: from_string(text(body)),
        ask=_ask_agent_first,
    )


def _that_reads_again(
    name: str, allowed: Callable[..., bool], read: Callable[[bytes], Kept]
) -> Peer:
    async def ask(asked: Iterable[tuple[Kept, str]]) -> None:
        for kept, url in asked:
            allowed(kept, AGENT, url)

    return Peer(name=_named(name), read=read, ask=ask, keeps_rules=False)


def _google() -> Peer:
    matcher = import_module("jwm.robotstxt.googlebot").RobotsMatcher()
    return _that_reads_again("jwm.robotstxt", matcher.OneAgentAllowedByRobots, bytes)


def _fast() -> Peer:
    matcher = import_module("robotstxt").RobotsMatcher()
    return _that_reads_again("fast-robotstxt", matcher.is_allowed, text)


_PEERS: dict[str, Callable[[], Peer]] = {
    "protego": _protego,
    "urllib.robotparser": _urllib,
    "robotspy": _robotspy,
    "jwm.robotstxt": _google,
    "fast-robotstxt": _fast,
}


class HandWrittenCache:
    """What many write instead of a library: a cache that knows time, and protego.

    No single flight, no store, no care for outages: the least that does the work.
    """

    def __init__(
        self, fetch: Callable[[tuple[str, str]], Awaitable[Kept]], *, max_origins: int
    ) -> None:
        """Know nothing yet; `fetch` gets the parsed file of (scheme, host)."""
        self._fetch = fetch
        self._cache: TLRUCache[tuple[str, str], Kept] = TLRUCache(
            max_origins, ttu=lambda _key, _value, now: now + 86_400
        )

    async def can_fetch(self, agent: str, url: str) -> bool:
        """Whether `agent` may fetch `url`."""
        parts = urlsplit(url)
        key = parts.scheme, parts.netloc
        try:
            parsed = self._cache[key]
        except KeyError:
            parsed = self._cache[key] = await self._fetch(key)
        return bool(parsed.can_fetch(url, agent))


def text(body: bytes) -> str:
    """`body` as most peers want it."""
    return body.decode("utf-8", "replace")


def _named(distribution: str) -> str:
    return f"{distribution} {metadata.version(distribution)}"
