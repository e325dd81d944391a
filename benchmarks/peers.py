"""The other parsers, each asked as its own documentation says.

They are imported when they are asked for, so that the suite runs without any of
them, and compares with those that are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module, metadata
from platform import python_version
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias
from urllib.parse import urlsplit
from urllib.robotparser import RobotFileParser

from cachetools import TLRUCache

from benchmarks.workload import AGENT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

__all__ = ["PEERS", "HandWrittenCache", "Kept", "Peer", "installed_peers"]

Kept: TypeAlias = Any
"""What a peer keeps of a file between two questions: each has its own type."""

_Asked = tuple[Kept, str]


class Peer(ABC):
    """A parser of robots.txt files.

    Attributes:
        key: what it is called on the command line and in results.
        distribution: on PyPI; empty for the standard library.
        keeps_rules: whether a file is parsed once, not again for each question.
    """

    key: ClassVar[str]
    distribution: ClassVar[str]
    keeps_rules: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """With its version."""
        if not self.distribution:
            return f"{self.key} of Python {python_version()}"
        return f"{self.key} {metadata.version(self.distribution)}"

    @abstractmethod
    def prepared(self, body: bytes) -> Kept:
        """What is kept of a file between two questions."""

    @abstractmethod
    def answer(self, kept: Kept, url: str) -> bool:
        """Whether `AGENT` may fetch `url`."""

    @abstractmethod
    async def ask(self, asked: Iterable[_Asked]) -> None:
        """Ask all of it: a loop as a user would write it."""


class ProtegoPeer(Peer):
    """The parser of Scrapy."""

    key = "protego"
    distribution = "protego"

    def __init__(self) -> None:
        self._parse = import_module("protego").Protego.parse

    def prepared(self, body: bytes) -> Kept:
        return self._parse(_text(body))

    def parse(self, text: str) -> None:
        """Only parse, for the measurement that compares no more than that."""
        self._parse(text)

    def answer(self, kept: Kept, url: str) -> bool:
        return bool(kept.can_fetch(url, AGENT))

    async def ask(self, asked: Iterable[_Asked]) -> None:
        for kept, url in asked:
            kept.can_fetch(url, AGENT)


class UrllibPeer(Peer):
    """The parser of the standard library."""

    key = "urllib.robotparser"
    distribution = ""

    def prepared(self, body: bytes) -> Kept:
        parser = RobotFileParser()
        parser.parse(_text(body).splitlines())
        return parser

    def answer(self, kept: Kept, url: str) -> bool:
        return bool(kept.can_fetch(AGENT, url))

    async def ask(self, asked: Iterable[_Asked]) -> None:
        for kept, url in asked:
            kept.can_fetch(AGENT, url)


class RobotspyPeer(Peer):
    """A parser after Google's tests, in Python."""

    key = "robotspy"
    distribution = "robotspy"

    def __init__(self) -> None:
        self._parser = import_module("robots").RobotsParser

    def prepared(self, body: bytes) -> Kept:
        return self._parser.from_string(_text(body))

    def answer(self, kept: Kept, url: str) -> bool:
        return bool(kept.can_fetch(AGENT, url))

    async def ask(self, asked: Iterable[_Asked]) -> None:
        for kept, url in asked:
            kept.can_fetch(AGENT, url)


class GooglePeer(Peer):
    """Google's own C++; reads the body again for each question."""

    key = "jwm.robotstxt"
    distribution = "jwm.robotstxt"
    keeps_rules = False

    def __init__(self) -> None:
        googlebot = import_module("jwm.robotstxt.googlebot")
        self._allowed = googlebot.RobotsMatcher().OneAgentAllowedByRobots

    def prepared(self, body: bytes) -> Kept:
        return body

    def answer(self, kept: Kept, url: str) -> bool:
        return bool(self._allowed(kept, AGENT, url))

    async def ask(self, asked: Iterable[_Asked]) -> None:
        allowed = self._allowed
        for kept, url in asked:
            allowed(kept, AGENT, url)


class FastPeer(Peer):
    """Google's C++, made faster by others; reads the body again for each question."""

    key = "fast-robotstxt"
    distribution = "fast-robotstxt"
    keeps_rules = False

    def __init__(self) -> None:
        self._allowed = import_module("robotstxt").RobotsMatcher().is_allowed

    def prepared(self, body: bytes) -> Kept:
        return _text(body)

    def answer(self, kept: Kept, url: str) -> bool:
        return bool(self._allowed(kept, AGENT, url))

    async def ask(self, asked: Iterable[_Asked]) -> None:
        allowed = self._allowed
        for kept, url in asked:
            allowed(kept, AGENT, url)


PEERS: tuple[type[Peer], ...] = (
    ProtegoPeer,
    UrllibPeer,
    RobotspyPeer,
    GooglePeer,
    FastPeer,
)


def installed_peers() -> dict[str, Peer]:
    """Those that can be imported here, by their keys."""
    peers = {}
    for kind in PEERS:
        try:
            peers[kind.key] = kind()
        except ImportError:
            continue
    return peers


class HandWrittenCache:
    """What many write instead of a library: a cache that knows time, and a parser.

    No single flight, no store, no care for outages: the least that does the work.
    """

    def __init__(
        self, fetch: Callable[[tuple[str, str]], Awaitable[Kept]], *, max_origins: int
    ) -> None:
        """Know nothing yet.

        Args:
            fetch: gets the parsed file of (scheme, host with port).
            max_origins: how many are kept, each for a day.
        """
        self._fetch = fetch
        self._cache: TLRUCache[tuple[str, str], Kept] = TLRUCache(
            max_origins, ttu=lambda _key, _value, now: now + 86_400
        )

    async def can_fetch(self, agent: str, url: str) -> bool:
        """Whether `agent` may fetch `url`, by protego."""
        parts = urlsplit(url)
        key = parts.scheme, parts.netloc
        try:
            parsed = self._cache[key]
        except KeyError:
            parsed = self._cache[key] = await self._fetch(key)
        return bool(parsed.can_fetch(url, agent))


def _text(body: bytes) -> str:
    return body.decode("utf-8", "replace")
