"""Obeys robots.txt in any client that sends a GET without following its redirects.

For clients without a hook that sees each hop, such as curl_cffi. Imports none of them.
"""

from __future__ import annotations

import inspect
import re
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from robotsgate import DisallowedError, InvalidURLError
from robotsgate.fetching import passes_unasked
from robotsgate.integrations._wrapping import (
    check_arguments,
    enter_turn,
    is_blocking,
)
from robotsgate.urls import Origin, RedirectError, redirect_target, wire_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from robotsgate import PolitenessGate, RobotsChecker, URLLike, sync

__all__ = ["RobotsGet", "robots_get"]

_Response = TypeVar("_Response")
_Response_co = TypeVar("_Response_co", covariant=True)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# Some clients escape the other characters, and so dial another host.
_ORIGIN_OF_EACH_CLIENT = re.compile(r"[a-z]+://[0-9a-z._\-\[\]:]+/")

# Headers that are meant for the origin that the caller has named, and no other.
_OF_ONE_ORIGIN = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


class RobotsGet(Protocol[_Response_co]):
    """What `robots_get` returns: a function of a URL that gives the last response.

    That is the redirect itself if it has no usable Location, leads to another scheme
    than http and https, or is one too many. For an asynchronous client, await it.

    Args:
        url: absolute; userinfo is not sent.
        headers: sent on each hop. After a redirect to another origin, Authorization,
            Cookie, Host and Proxy-Authorization are left out.

    Raises:
        DisallowedError: robots.txt does not allow `url`, or where a redirect leads.
        InvalidURLError: `url` names no origin, or clients disagree which one.
    """

    def __call__(
        self, url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> _Response_co:
        """Send a GET or a HEAD, and follow its redirects."""
        ...


@overload
def robots_get(
    checker: RobotsChecker,
    agent: str | Sequence[str],
    get: Callable[..., Awaitable[_Response]],
    *,
    gate: PolitenessGate | None = None,
    max_redirects: int = 20,
) -> RobotsGet[Awaitable[_Response]]: ...


@overload
def robots_get(
    checker: sync.RobotsChecker,
    agent: str | Sequence[str],
    get: Callable[..., _Response],
    *,
    gate: sync.PolitenessGate | None = None,
    max_redirects: int = 20,
) -> RobotsGet[_Response]: ...


def robots_get(
    checker: RobotsChecker | sync.RobotsChecker,
    agent: str | Sequence[str],
    get: Callable[..., Any],
    *,
    gate: PolitenessGate | sync.PolitenessGate | None = None,
    max_redirects: int = 20,
) -> RobotsGet[Any]:
    """A `get` that follows redirects, and asks the checker before each hop.

    For GET and HEAD: `get = robots_get(checker, agent, session.get)`, then
    `response = await get(url)`.
    A request for /robots.txt passes without a question. To let another one pass, call
    the `get` of the client.

    Args:
        checker: answers; close it yourself. One of `robotsgate.sync` for a client that
            blocks.
        agent: as in `RobotsChecker.can_fetch`.
        get: sends one request; called as `get(url, headers=..., allow_redirects=False)`
            with a URL in ASCII and a dict. It follows no redirect, sends the URL as it
            is, and reads the body.
        gate: gives each hop its turn, which ends when `get` returns. The gate asks its
            own checker about its own agent. A request for /robots.txt has no turn.
        max_redirects: how many to follow, ≥ 0.

    Raises:
        TypeError: `checker` or `gate` is something else, or `get` is not an `async`
            function for a `robotsgate.RobotsChecker`, or is one for another checker.
    """
    blocks = is_blocking(checker)
    check_arguments(checker, gate, is_blocking=blocks)
    if inspect.iscoroutinefunction(get) == blocks:
        kind = "a blocking" if blocks else "an async"
        raise TypeError(f"expected {kind} function for {checker!r}, got {get!r}")
    kind_of_get = _BlockingGet if blocks else _AsyncGet
    return kind_of_get(checker, agent, get, gate, max_redirects)


@dataclass(frozen=True, slots=True)
class _Get:
    """What `robots_get` was given; `checker` and `gate` are of the kind of `get`."""

    checker: Any
    agent: str | Sequence[str]
    get: Callable[..., Any]
    gate: Any
    max_redirects: int


class _BlockingGet(_Get):
    def __call__(
        self, url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> object:
        hops = _Hops(url, headers, max_redirects=self.max_redirects)
        while True:
            with ExitStack() as block:
                turn = enter_turn(
                    hops.asked, self.checker, self.agent, gate=self.gate, block=block
                )
                response = self.get(
                    hops.url, headers=hops.headers, allow_redirects=False
                )
                if turn is not None:
                    turn.report(response)
            if not hops.follow(response):
                return response


class _AsyncGet(_Get):
    async def __call__(
        self, url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> object:
        hops = _Hops(url, headers, max_redirects=self.max_redirects)
        while True:
            async with AsyncExitStack() as block:
                turn = None
                for asked in hops.asked:
                    verdict = None
                    if self.gate is not None:
                        turn = await block.enter_async_context(self.gate.turn(asked))
                    else:
                        verdict = await self.checker.refusal(self.agent, asked)
                    if verdict is not None:
                        raise DisallowedError(verdict)
                response = await self.get(
                    hops.url, headers=hops.headers, allow_redirects=False
                )
                if turn is not None:
                    turn.report(response)
            if not hops.follow(response):
                return response


class _Hops:
    """The GETs for one page.

    Attributes:
        url: that of the current one; ASCII.
        headers: those of the caller that its origin may see.
    """

    def __init__(
        self,
        url: str | URLLike,
        headers: Mapping[str, str] | None,
        *,
        max_redirects: int,
    ) -> None:
        self.url = _unambiguous_url(url)
        self.headers = dict(headers or {})
        self._redirects_left = max_redirects

    @property
    def asked(self) -> list[str]:
        """The URL to ask about; empty if the GET passes unasked."""
        return [] if passes_unasked(self.url) else [self.url]

    def follow(self, response: Any) -> bool:  # noqa: ANN401 (of any client)
        """Go on with where `response` redirects to, if that can be followed."""
        status = getattr(response, "status_code", None) or response.status
        if status not in _REDIRECTS or not self._redirects_left:
            return False
        try:
            location = response.headers.get("location")
            url = _unambiguous_url(redirect_target(self.url, location))
        except (RedirectError, InvalidURLError):
            return False
        if Origin.from_url(url) != Origin.from_url(self.url):
            self.headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _OF_ONE_ORIGIN
            }
        self.url = url
        self._redirects_left -= 1
        return True


def _unambiguous_url(url: str | URLLike) -> str:
    """`url` as each client sends it.

    Raises:
        InvalidURLError: it names no origin, or clients disagree which one.
    """
    sent = wire_url(url)
    if not _ORIGIN_OF_EACH_CLIENT.match(sent):
        raise InvalidURLError(f"expected an unambiguous host, got {sent!r}", url=url)
    return sent
