"""Fetches one robots.txt, following redirects, with a size limit and a deadline.

RFC 9309 §2.3.1. The GET is unconditional, without cookies or credentials. This module
must never decide what a response means or where a redirect leads; `caching` does that.
"""

from __future__ import annotations

import inspect
import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from robotsgate.caching._address_guard import FetchGuard, GuardRules
from robotsgate.caching._coding import ACCEPT_ENCODING, content_encoding_of
from robotsgate.caching._hops import Hops
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AddressGuard
from robotsgate.errors import UnsupportedError
from robotsgate.fetching._body import decoded_body
from robotsgate.fetching._direct import DirectFetcher, proxy_variable
from robotsgate.fetching._failure import MISTAKES, outcome_of
from robotsgate.fetching._fetcher import OwnFetch, own_fetch
from robotsgate.fetching._httpx import (
    AsyncClientLike,
    AsyncTransportLike,
    ClientFetcher,
    TransportFetcher,
)
from robotsgate.fetching._threads import DaemonThreads

if TYPE_CHECKING:
    from typing import TypeGuard

    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._fetcher import FetchedResponse, Fetcher
    from robotsgate.urls._url import Origin

_LOGGER = logging.getLogger("robotsgate.fetching")

# A lookup blocks its thread for 30 s if no name server responds (glibc tries three of
# them twice, for 5 s each), but its fetch gives up after 10 s. A thread takes 100 KB.
_THREADS_PER_FETCH = 4

# How many characters of an error to log.
_LONGEST_TEXT = 300

_BLIND = (
    "the address guard (AddressGuard.%s) cannot see which addresses your client "
    "connects to, directly or through a proxy: it refuses only localhost and addresses "
    "that are written in a URL; protect your network in another way, or turn the guard "
    "off with %s=Policy(address_guard=AddressGuard.OFF)"
)

_NO_PROXY = (
    "%s is set, but this checker ignores it; to use the proxy, pass"
    " client=httpx.AsyncClient() (on the command line: --proxy)"
)

_warned: set[str] = set()  # per process, which may create a checker for each task


class RobotsTxtFetcher:
    """Fetches robots.txt files; fetches may run concurrently."""

    def __init__(
        self,
        client: object | None,
        *,
        user_agent: str,
        policy: Policy,
        max_concurrent_fetches: int,
    ) -> None:
        """Create a fetcher without connecting.

        Raises:
            TypeError: `client` cannot send requests, or `user_agent` is not a str.
            ValueError: `user_agent` cannot be sent as a header.
        """
        _check_user_agent(user_agent)
        self._sender = sender_for(client)
        self._policy = policy
        self._threads = DaemonThreads(_THREADS_PER_FETCH * max_concurrent_fetches)
        self._guard_rules = GuardRules(policy)
        setting = getattr(self._sender, "guard_setting", "policy")
        self._ignored_proxy = proxy_variable() if client is None else None
        if self._ignored_proxy:
            _warn_once(_NO_PROXY % self._ignored_proxy)
        self._blind = ""
        if setting is not None and policy.address_guard is not AddressGuard.OFF:
            self._blind = _BLIND % (policy.address_guard.name, setting)
        self._headers = (
            ("User-Agent", user_agent),
            ("Accept", "text/plain, */*;q=0.1"),
            ("Accept-Encoding", ACCEPT_ENCODING),
        )

    def check_scheme(self, origin: Origin) -> None:
        """Raise if the caller's client cannot fetch from `origin`.

        Raises:
            UnsupportedError: the scheme is ftp, and the caller passed a client; a
                direct connection could bypass that client's proxy.
        """
        if origin.scheme == "ftp" and not isinstance(self._sender, DirectFetcher):
            raise UnsupportedError(
                f"only a checker without a client can fetch over FTP, got {origin}"
            )

    async def fetch(self, origin: Origin) -> Outcome:
        """Fetch the robots.txt of `origin` and return the outcome.

        A network or server failure is an outcome, not an exception.

        Raises:
            RuntimeError: raised by the caller's client, for example because it is
                closed. The other `MISTAKES` propagate as well, unless this machine
                failed.
        """
        if self._blind:
            _warn_once(self._blind)
        hops = Hops(origin, policy=self._policy)
        outer = sys.exception()
        fetch = OwnFetch(
            guard=FetchGuard(self._guard_rules),
            policy=self._policy,
            threads=self._threads,
            deadline=anyio.current_time() + self._policy.fetch_deadline,
            origin=origin,
            task_id=anyio.get_current_task().id,
        )
        token = own_fetch.set(fetch)
        try:
            outcome = await self._follow(fetch, hops)
        except Exception as error:
            outcome = outcome_of(
                error,
                redirects=hops.redirects,
                deadline=self._policy.fetch_deadline,
                outer=outer,
                ignored_proxy=self._ignored_proxy,
            )
            is_mistake = isinstance(error, MISTAKES)
            if is_mistake and outcome.failure is not FailureKind.LOCAL:
                raise
        finally:
            fetch.end()
            own_fetch.reset(token)
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("%s: %s", hops.url, _summary(outcome))
        return outcome

    @cached_property
    def _ftp(self) -> Fetcher:
        from robotsgate.fetching._ftp import FtpFetcher  # noqa: PLC0415 (rarely needed)

        return FtpFetcher()

    async def _follow(self, fetch: OwnFetch, hops: Hops) -> Outcome:
        """GET the robots.txt and follow its redirects."""
        while True:
            fetch.has_left_origin |= fetch.origin != hops.origin
            fetch.origin, fetch.hop = hops.origin, hops.url
            response = await self._get(fetch.hop, fetch)
            body = decoded_body(response, max_bytes=self._policy.max_body_bytes + 1)
            outcome = hops.after(
                response.status,
                response.headers,
                body,
                content_encoding=content_encoding_of(response.headers),
            )
            if outcome is not None:
                return outcome
            _LOGGER.debug("%s redirects to %s", fetch.hop, hops.url)

    async def _get(self, url: str, fetch: OwnFetch) -> FetchedResponse:
        """Send one GET, and return the response."""
        # One byte more than needed shows whether the last line was cut off.
        max_bytes = self._policy.max_body_bytes + 1
        if fetch.origin.scheme != "ftp" and isinstance(self._sender, DirectFetcher):
            return await self._sender.get(url, self._headers, max_bytes=max_bytes)
        sender: Fetcher = self._sender
        if fetch.origin.scheme == "ftp":
            sender = self._ftp
        else:
            fetch.guard.check_host(fetch.origin.host)
        with anyio.fail_after(fetch.deadline - anyio.current_time()):
            return await sender.get(url, self._headers, max_bytes=max_bytes)


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        _LOGGER.warning(message)


def sender_for(client: object | None) -> Fetcher:
    """The fetcher for `client`.

    Args:
        client: a `Fetcher`, or an object with the methods of an httpx or httpx2
            `AsyncClient` or async transport; `None` to open a new connection for each
            GET.

    Raises:
        TypeError: `client` is something else.
    """
    if client is None:
        return DirectFetcher()
    is_blocking = hasattr(client, "__enter__") and not hasattr(client, "__aenter__")
    if not isinstance(client, type) and not is_blocking:
        if isinstance(client, AsyncTransportLike):
            return TransportFetcher(client)
        if isinstance(client, AsyncClientLike):
            return ClientFetcher(client)
        if _is_fetcher(client):
            return client
    raise TypeError(
        "expected an AsyncClient or async transport from httpx or httpx2, or a"
        f" Fetcher, got {client!r}"
    )


def _is_fetcher(client: object) -> TypeGuard[Fetcher]:
    """Whether `client` has a Fetcher's `get` method, not a session's."""
    get = getattr(client, "get", None)
    return callable(get) and "max_bytes" in inspect.signature(get).parameters


def _check_user_agent(user_agent: object) -> None:
    if not isinstance(user_agent, str):
        raise TypeError(f"expected user_agent to be a str, got {user_agent!r}")
    is_sendable = user_agent.isascii() and user_agent.isprintable()
    if not (is_sendable and user_agent.strip() == user_agent != ""):
        raise ValueError(
            f"expected user_agent to be printable ASCII, got {user_agent!r}"
        )


def _summary(outcome: Outcome) -> str:
    """A short description of the outcome, excluding the body."""
    if outcome.error is None:
        return f"status {outcome.status}, {len(outcome.body)} bytes"
    return outcome.error[:_LONGEST_TEXT]
