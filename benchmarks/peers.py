"""Other parsers, each called as its own documentation says.

They are imported on demand, so that the suite compares with those that are installed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, metadata
from platform import python_version
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.robotparser import RobotFileParser

from benchmarks.workload import AGENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Kept: TypeAlias = Any
"""What a peer keeps of a file between lookups; each peer has its own type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A parser of robots.txt files.

    Attributes:
        name: its name and version.
        read: reads a file and returns what is kept between lookups.
        ask: looks up pairs of what is kept and a URL, in a loop as a user writes it.
        keeps_rules: whether a file is parsed only once, not again for each lookup.
    """

    name: str
    read: Callable[[bytes], Kept]
    ask: Callable[[Iterable[tuple[Kept, str]]], Awaitable[None]]
    keeps_rules: bool = True


def installed_peers() -> dict[str, Peer]:
    """The peers that can be imported, by key."""
    peers = {}
    for key, peer in _PEERS.items():
        try:
            peers[key] = peer()
        except ImportError:
            continue
    return peers


def _protego() -> Peer:
    parse = import_module("protego").Protego.parse

    async def ask(lookups: Iterable[tuple[Kept, str]]) -> None:
        for kept, url in lookups:
            kept.can_fetch(url, AGENT)

    return Peer(
        name=_with_version("protego"), read=lambda body: parse(text(body)), ask=ask
    )


async def _ask_with_agent_first(lookups: Iterable[tuple[Kept, str]]) -> None:
    for kept, url in lookups:
        kept.can_fetch(AGENT, url)


def _urllib() -> Peer:
    def read(body: bytes) -> RobotFileParser:
        parser = RobotFileParser()
        parser.parse(text(body).splitlines())
        return parser

    name = f"urllib.robotparser of Python {python_version()}"
    return Peer(name=name, read=read, ask=_ask_with_agent_first)


def _robotspy() -> Peer:
    from_string = import_module("robots").RobotsParser.from_string
    return Peer(
        name=_with_version("robotspy"),
        read=lambda body: from_string(text(body)),
        ask=_ask_with_agent_first,
    )


def _without_parsing_step(
    name: str, allowed: Callable[..., bool], read: Callable[[bytes], Kept]
) -> Peer:
    async def ask(lookups: Iterable[tuple[Kept, str]]) -> None:
        for kept, url in lookups:
            allowed(kept, AGENT, url)

    return Peer(name=_with_version(name), read=read, ask=ask, keeps_rules=False)


def _google() -> Peer:
    matcher = import_module("jwm.robotstxt.googlebot").RobotsMatcher()
    return _without_parsing_step(
        "jwm.robotstxt", matcher.OneAgentAllowedByRobots, bytes
    )


def _fast() -> Peer:
    matcher = import_module("robotstxt").RobotsMatcher()
    return _without_parsing_step("fast-robotstxt", matcher.is_allowed, text)


_PEERS: dict[str, Callable[[], Peer]] = {
    "protego": _protego,
    "urllib.robotparser": _urllib,
    "robotspy": _robotspy,
    "jwm.robotstxt": _google,
    "fast-robotstxt": _fast,
}


def text(body: bytes) -> str:
    """`body` as text, which most peers require."""
    return body.decode("utf-8", "replace")


def _with_version(distribution: str) -> str:
    return f"{distribution} {metadata.version(distribution)}"
