"""robots.txt for any client that can send a GET without following redirects.

It is meant for clients without a hook that sees each hop, such as curl_cffi, and
imports none of them.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from robotsgate import InvalidURLError
from robotsgate.integrations._door import (
    ASYNC,
    BLOCKING,
    ORIGIN_OF_EACH_CLIENT,
    Client,
    Door,
    at_once,
    urls_by_host,
)
from robotsgate.urls import Origin, RedirectError, next_hop, wire_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from robotsgate import PolitenessGate, RobotsChecker, URLLike, sync

__all__ = ["RobotsGet", "robots_get"]

_Response = TypeVar("_Response")
_Response_co = TypeVar("_Response_co", covariant=True)

_SLASHES = re.compile(r"^([a-z]+://[^/]+)/+")

# Headers that are only meant for the origin that the caller requested.
_OF_ONE_ORIGIN = frozenset({"authorization", "cookie", "host", "proxy-authorization"})


class RobotsGet(Protocol[_Response_co]):
    """The return type of `robots_get`: a function that returns the last response.

    The last response is a redirect if its Location is unusable, if the target's scheme
    is not http or https, or if there are too many redirects. For an async client, await
    the result.

    Args:
        url: an absolute URL; userinfo is not sent.
        headers: sent with each hop. After a redirect to another origin, Authorization,
            Cookie, Host and Proxy-Authorization are omitted.

    Raises:
        DisallowedError: robots.txt disallows `url` or the target of a redirect.
        InvalidURLError: `url` has no origin, or its origin is ambiguous.
    """

    def __call__(
        self, url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> _Response_co:
        """Send a GET or HEAD request and follow its redirects."""
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
    """Create a `get` that follows redirects and checks each hop.

    It works for GET and HEAD: `get = robots_get(checker, agent, session.get)`, then
    `response = await get(url)`. Requests for /robots.txt are not checked. To bypass the
    check for any other request, call the client's own `get`.

    Args:
        checker: checks the URLs; close it yourself. For a sync client, use a checker
            from `robotsgate.sync`.
        agent: as in `RobotsChecker.can_fetch`.
        get: sends one request; called as `get(url, headers=..., allow_redirects=False)`
            with an ASCII URL and a dict of headers. It must not follow redirects, must
            send the URL unchanged, and must read the body.
        gate: provides a turn for each hop; the turn ends when `get` returns. The gate
            uses its own checker and agent. Requests for /robots.txt do not need a turn.
        max_redirects: the maximum number of redirects, ≥ 0.

    Raises:
        TypeError: `checker` or `gate` has the wrong type; or `get` is an async function
            and `checker` is not async, or vice versa.
        InvalidProductTokenError: `agent` is not the name of a crawler.
        ValueError: `max_redirects` is negative.
    """
    door = Door(checker, agent, gate, modules=[ASYNC, BLOCKING])
    blocks = door.is_blocking
    if inspect.iscoroutinefunction(get) == blocks:
        kind = "a blocking" if blocks else "an async"
        raise TypeError(f"expected {kind} function for {checker!r}, got {get!r}")
    if max_redirects < 0:
        raise ValueError(f"expected max_redirects to be 0 or more, got {max_redirects}")
    client = Client(lambda hops: hops.asked, lambda response, *_: response)

    async def send(
        url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> object:
        hops = _Hops(url, headers, max_redirects=max_redirects)
        while True:
            response = await door.send(
                hops,
                lambda hop: get(hop.url, headers=hop.headers, allow_redirects=False),
                client,
            )
            if not hops.follow(response):
                return response

    def send_blocking(
        url: str | URLLike, *, headers: Mapping[str, str] | None = None
    ) -> object:
        return at_once(send(url, headers=headers))

    return send_blocking if blocks else send


class _Hops:
    """The requests for one page, including redirects.

    Attributes:
        headers: the caller's headers, minus any that must not be sent to this URL.
    """

    def __init__(
        self,
        url: str | URLLike,
        headers: Mapping[str, str] | None,
        *,
        max_redirects: int,
    ) -> None:
        self.url = wire_url(url)
        if not ORIGIN_OF_EACH_CLIENT.match(self.url):
            raise InvalidURLError(
                f"expected an unambiguous host, got {self.url!r}", url=url
            )
        self.headers = dict(headers or {})
        self._redirects_left = max_redirects

    @property
    def asked(self) -> list[str]:
        """The URLs to check; empty if no check is needed.

        There are two if the path starts with "//": requests before 2.34 sends it with
        a single slash.
        """
        return [
            url
            for target in dict.fromkeys((self.url, _SLASHES.sub(r"\1/", self.url)))
            for url in urls_by_host(target, self.headers.items())
        ]

    def follow(self, response: Any) -> bool:  # noqa: ANN401 (any client's)
        """Move on to the redirect target of `response`; return whether there is one."""
        status = getattr(response, "status_code", None) or response.status
        location = response.headers.get("location")
        try:
            hop = next_hop(self.url, status, [location or ""])
        except RedirectError:
            return False
        if hop is None or not self._redirects_left:
            return False
        origin, url = hop
        if not ORIGIN_OF_EACH_CLIENT.match(url):
            return False
        if origin != Origin.from_url(self.url):
            self.headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _OF_ONE_ORIGIN
            }
        self.url = url
        self._redirects_left -= 1
        return True
