"""Fetches one robots.txt, following redirects, with a size limit and a deadline.

RFC 9309 §2.3.1. The GET is unconditional, without cookies or credentials. This module
must never decide what a response means or where a redirect leads; `caching` does that.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

import anyio

from robotsgate._flights import DaemonThreads, current_task
from robotsgate.caching._hops import ACCEPT_ENCODING, FetchGuard, Hops
from robotsgate.caching._outcome import FailureKind, access_result
from robotsgate.caching._policy import AddressGuard
from robotsgate.errors import UnsupportedError
from robotsgate.fetching._body import decoded_body
from robotsgate.fetching._direct import DirectFetcher
from robotsgate.fetching._fetcher import (
    MISTAKES,
    NEVER_SENT,
    OwnFetch,
    outcome_of,
    own_fetch,
)
from robotsgate.fetching._httpx import (
    AsyncClientLike,
    AsyncTransportLike,
    ClientFetcher,
    TransportFetcher,
)
from robotsgate.robotstxt._headers import pairs_of
from robotsgate.urls._url import Origin, wire_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeGuard

    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import AccessResult, Policy
    from robotsgate.fetching._fetcher import FetchedResponse, Fetcher

    Headers = Sequence[tuple[str, str]]
    Sign = Callable[[str, str, Mapping[str, str]], Mapping[str, str]]

_LOGGER = logging.getLogger("robotsgate.fetching")

# A lookup blocks its thread for 30 s if no name server responds (glibc tries three of
# them twice, for 5 s each), but its fetch gives up after 10 s. A thread takes 100 KB.
_THREADS_PER_FETCH = 4

# What `sign` must not add, besides Content-…: the connection's (RFC 9110 §7.6.1).
_NOT_ADDED = frozenset({
    *NEVER_SENT, "connection", "expect", "host", "keep-alive", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
})  # fmt: skip
_TOKEN = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+")

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
        sign: Sign | None = None,
        policy: Policy,
        max_concurrent_fetches: int,
    ) -> None:
        _check_user_agent(user_agent)
        self._sender = sender_for(client)
        self._sign = sign
        self._policy = policy
        # One byte more than needed shows whether the last line was cut off.
        self._max_bytes = policy.max_body_bytes + 1
        self._threads = DaemonThreads(_THREADS_PER_FETCH * max_concurrent_fetches)
        setting = getattr(self._sender, "guard_setting", "policy")
        self._ignored_proxy = _proxy_variable() if client is None else None
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
        """Raise if the caller's client cannot fetch from `origin`."""
        # A direct FTP connection could bypass the client's proxy.
        if origin.scheme == "ftp" and not isinstance(self._sender, DirectFetcher):
            raise UnsupportedError(
                f"only a checker without a client can fetch over FTP, got {origin}"
            )

    async def fetch(self, origin: Origin, url: str | None = None) -> Outcome:
        """Return the outcome of fetching the robots.txt of `origin`, or its `url`.

        `sign` may raise anything, and the caller's client one of the `MISTAKES`, for
        example a RuntimeError because it is closed. Any other failure is an outcome,
        not an exception.
        """
        if self._blind:
            _warn_once(self._blind)
        hops = Hops(origin, policy=self._policy, url=url)
        fetch = OwnFetch(
            guard=FetchGuard(self._policy),
            policy=self._policy,
            threads=self._threads,
            deadline=anyio.current_time() + self._policy.fetch_deadline,
            origin=origin,
            task=current_task(),
        )
        token = own_fetch.set(fetch)
        outcome = None
        try:
            while outcome is None:
                outcome = await self._after_hop(fetch, hops)
        finally:
            fetch.hop = ""
            own_fetch.reset(token)
        if _LOGGER.isEnabledFor(logging.DEBUG):
            _LOGGER.debug("%s: %s", hops.url, _summary(outcome))
        return outcome

    @cached_property
    def _ftp(self) -> Fetcher:
        from robotsgate.fetching._ftp import FtpFetcher  # noqa: PLC0415 (rarely needed)

        return FtpFetcher()

    async def _after_hop(self, fetch: OwnFetch, hops: Hops) -> Outcome | None:
        """The outcome if the next hop ends the fetch; `None` if it is a redirect."""
        fetch.has_left_origin |= fetch.origin != hops.origin
        fetch.origin, fetch.hop = hops.origin, hops.url
        headers: Headers = self._headers
        if self._sign is not None and fetch.origin.scheme != "ftp":
            headers = signed_headers(headers, self._sign, fetch.hop)
        outer = sys.exception()
        try:
            response = await self._get(fetch, headers)
            body = decoded_body(response, max_bytes=self._max_bytes)
            outcome = hops.after(response.status, response.headers, body)
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
        if outcome is None:
            _LOGGER.debug("%s redirects to %s", fetch.hop, hops.url)
        return outcome

    async def _get(self, fetch: OwnFetch, headers: Headers) -> FetchedResponse:
        sender: Fetcher = self._sender
        if fetch.origin.scheme == "ftp":
            sender = self._ftp
        elif isinstance(sender, DirectFetcher):  # it needs no further cancel scope
            return await sender.get(fetch.hop, headers, max_bytes=self._max_bytes)
        else:
            fetch.guard.check_host(fetch.origin.host)
        with anyio.fail_after(fetch.deadline - anyio.current_time()):
            return await sender.get(fetch.hop, headers, max_bytes=self._max_bytes)


def fetch_blocking(
    url: str, user_agent: str, *, policy: Policy
) -> tuple[AccessResult, bytes]:
    """Fetch a robots.txt from any URL, and return its access result and its body.

    Uses the proxy that the environment sets, if any.

    Raises:
        InvalidURLError: as for `Origin.from_url`.
    """
    origin = Origin.from_url(url)

    async def fetch() -> Outcome:
        import httpx  # noqa: PLC0415 (slow to import)

        proxied = httpx.AsyncClient() if _proxy_variable() else nullcontext()
        async with proxied as client:
            fetcher = RobotsTxtFetcher(
                client, user_agent=user_agent, policy=policy, max_concurrent_fetches=1
            )
            return await fetcher.fetch(origin, wire_url(url))

    result: Future[Outcome] = Future()

    def run() -> None:
        try:
            result.set_result(anyio.run(fetch))
        except BaseException as error:  # noqa: BLE001 (raised to the caller)
            result.set_exception(error)

    # Not `anyio.from_thread.start_blocking_portal`, which hangs if a KeyboardInterrupt
    # arrives while it starts.
    threading.Thread(target=run, name="robotsgate", daemon=True).start()
    outcome = result.result()
    return access_result(outcome, policy, origin=origin.key), outcome.body


def _proxy_variable() -> str | None:
    """The environment variable that sets a proxy, or `None` if there is none."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        for variable in (name, name.lower()):
            if os.environ.get(variable):
                return variable
    return None


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        _LOGGER.warning(message)


def sender_for(client: object | None) -> Fetcher:
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
    if not _is_sendable(user_agent):
        raise ValueError(
            f"expected user_agent to be printable ASCII, got {user_agent!r}"
        )


def _is_sendable(value: str) -> bool:
    return value.isascii() and value.isprintable() and value.strip() == value != ""


def signed_headers(headers: Headers, sign: Sign, url: str) -> Headers:
    """`headers`, and the headers that `sign` adds to a GET for `url`.

    Raises:
        TypeError: `sign` does not return a mapping of str to str.
        ValueError: `sign` returns a header that it may not add.
    """
    given: object = sign("GET", url, dict(headers))
    if not isinstance(given, Mapping):
        raise TypeError(f"expected sign to return a mapping of headers, got {given!r}")
    signed = {name.lower(): (name, value) for name, value in headers}
    for name, value in pairs_of(given):
        key = name.lower()
        if not (_TOKEN.fullmatch(name) and _is_sendable(value)):
            raise ValueError(
                "expected sign to return names and printable ASCII values of headers,"
                f" got {name!r}: {value!r}"
            )
        is_replaced = signed.setdefault(key, (name, value))[1] != value
        if is_replaced or key in _NOT_ADDED or key.startswith("content-"):
            raise ValueError(f"expected only headers that sign may add, got {name!r}")
    return list(signed.values())


def _summary(outcome: Outcome) -> str:
    if outcome.error is None:
        return f"status {outcome.status}, {len(outcome.body)} bytes"
    return outcome.error[:_LONGEST_TEXT]
