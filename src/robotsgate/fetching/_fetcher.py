"""Fetches one robots.txt: a GET, its redirects, a bounded body, a deadline.

RFC 9309 §2.3.1. The GET is unconditional, without cookies and credentials.
Must never decide what an answer means: that is `caching`.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Self, assert_never, cast

import anyio
import anyio.lowlevel

from robotsgate.caching._freshness import CACHING_HEADERS
from robotsgate.caching._missing_page import BYTES_TO_READ
from robotsgate.caching._outcome import (
    Answered,
    BrokenRedirect,
    Failed,
    is_server_error,
)
from robotsgate.caching._policy import AddressGuard
from robotsgate.fetching._address_guard import FetchGuard, GuardRules
from robotsgate.fetching._body import ACCEPT_ENCODING, check_coding, read_body
from robotsgate.fetching._dialling import CLOSE_SECONDS
from robotsgate.fetching._exchange import exchange_for
from robotsgate.fetching._failure import FETCH_ERRORS, MISTAKES, failed
from robotsgate.urls._redirect import RedirectError, redirect_target

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    import httpx

    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy
    from robotsgate.urls._origin import Origin

_LOGGER = logging.getLogger("robotsgate.fetching")

# How long an error page may take to show its title, which is not worth the rest of
# a deadline.
_ERROR_PAGE_SECONDS = 5.0

# Of an error, in the log.
_LONGEST_TEXT = 300

_CHUNKS_BETWEEN_CHECKPOINTS = 256

_BLIND = (
    "the address guard (AddressGuard.%s) cannot see which addresses your client dials, "
    "directly or through a proxy: it refuses only those that a URL names by number, "
    "and localhost; guard your network in another way, or say that you do not need it "
    "with Policy(address_guard=AddressGuard.OFF)"
)


class Fetcher:
    """Fetches the robots.txt of one origin after the other, or of many at once."""

    def __init__(
        self,
        client: object | None,
        *,
        user_agent: str,
        policy: Policy,
        max_concurrent_fetches: int,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            client: an httpx client or transport that sends the requests; `None`:
                a connection for each.
            user_agent: the whole User-Agent header.
            policy: deadline, time-outs, redirects, sizes and address guard.
            max_concurrent_fetches: how many places there are, ≥ 1.

        Raises:
            TypeError: `client` is neither of them.
        """
        self._exchange = exchange_for(client, policy)
        self._policy = policy
        self._guard_rules = GuardRules(policy)
        self._must_warn = (
            policy.address_guard is not AddressGuard.OFF and self._exchange.is_blind
        )
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "text/plain, */*;q=0.1",
            "Accept-Encoding": ACCEPT_ENCODING,
        }
        self._max_concurrent_fetches = max_concurrent_fetches
        self._slots: anyio.Semaphore | None = None

    @property
    def place(self) -> anyio.Semaphore:
        """One of the places for fetches; to be had for the time of a `fetch`."""
        if self._slots is None:  # made here, because it belongs to a running loop
            self._slots = anyio.Semaphore(
                self._max_concurrent_fetches, fast_acquire=True
            )
        return self._slots

    async def fetch(self, origin: Origin) -> Outcome:
        """What asking `origin` for its robots.txt came to; asks for no place.

        Raises nothing that the world causes.

        Raises:
            RuntimeError: or another of `MISTAKES`, from a client that the caller
                brought and, for example, has closed.
        """
        if self._must_warn:
            self._must_warn = False
            _LOGGER.warning(_BLIND, self._policy.address_guard.name)
        trail = [origin.robots_url]
        outer = sys.exception()
        try:
            with anyio.fail_after(self._policy.fetch_deadline):
                outcome = await self._follow(trail)
        except MISTAKES:
            raise
        except Exception as error:  # noqa: BLE001 (a client may be anybody's code)
            outcome = failed(
                error,
                redirects=len(trail) - 1,
                deadline=self._policy.fetch_deadline,
                outer=outer,
            )
        _LOGGER.debug("%s: %s", trail[-1], _summary(outcome))
        return outcome

    async def _follow(self, trail: list[str]) -> Outcome:
        """GET the last URL of `trail`, and on from there; `trail` grows."""
        guard = FetchGuard(self._guard_rules)
        while True:
            status: int | None = None
            headers: dict[str, str] = {}
            try:
                response = await self._get(trail[-1], guard)
                status, headers = response.status_code, _caching_headers(response)
                try:
                    if not 300 <= status <= 399:  # noqa: PLR2004
                        body = await self._body(response)
                        return Answered(
                            status=status,
                            headers=headers,
                            body=body,
                            redirects=len(trail) - 1,
                        )
                finally:
                    await _close(response)
                trail.append(self._next_url(trail, response))
            except RedirectError as error:
                return BrokenRedirect(
                    status=status,
                    headers=headers,
                    error=str(error),
                    redirects=len(trail) - 1,
                )
            _LOGGER.debug("%s redirects to %s", trail[-2], trail[-1])

    async def _get(self, url: str, guard: FetchGuard) -> httpx.Response:
        # With its own Host, httpx does not try to decode international names, of
        # which it refuses some that browsers and DNS know.
        authority = url.split("/", 3)[2]
        headers = {"Host": authority, **self._headers}
        return await self._exchange.get(url, headers, guard)

    def _next_url(self, trail: list[str], response: httpx.Response) -> str:
        """Where `response` redirects to.

        Raises:
            RedirectError: nowhere that is followed.
        """
        # httpx joins the values of one name with commas, into one that nobody sent.
        locations = set(response.headers.get_list("location"))
        if len(locations) > 1:
            message = f"a redirect to {len(locations)} places at once"
            raise RedirectError(message)
        url = redirect_target(trail[-1], locations.pop() if locations else None)
        if url in trail:
            message = f"a redirect loop at {url}"
            raise RedirectError(message)
        if len(trail) > self._policy.max_redirects:
            message = f"more than {self._policy.max_redirects} redirects"
            raise RedirectError(message)
        return url

    async def _body(self, response: httpx.Response) -> bytes:
        """As much of the body as the status makes worth reading."""
        if 200 <= response.status_code <= 299:  # noqa: PLR2004
            # One byte more than counts, which tells a cut last line from a whole one.
            return await _decoded(response, self._policy.max_body_bytes + 1)
        if is_server_error(response.status_code) and self._policy.detect_missing_page:
            return await _error_page(response)
        return b""


async def _decoded(
    response: httpx.Response, max_bytes: int, into: bytearray | None = None
) -> bytes:
    # The raw stream and not aiter_bytes, which decodes without a bound, nor
    # aiter_raw, which refuses the streams of mock transports.
    coding = response.headers.get("content-encoding", "")
    if response.is_stream_consumed:  # by a hook of the client, or it came whole
        check_coding(coding)
        return (await response.aread())[:max_bytes]
    # An httpx.AsyncByteStream, which its type does not say.
    chunks = _Chunks(cast("AsyncIterable[bytes]", response.stream))
    try:
        return await read_body(chunks, coding, max_bytes=max_bytes, into=into)
    finally:
        await _close(response)
        with (
            anyio.move_on_after(CLOSE_SECONDS, shield=True),
            suppress(*FETCH_ERRORS),
        ):
            # httpcore's generators must come to their end: trio complains about
            # those that are left half-way.
            async for _ in chunks:
                pass


class _Chunks:
    """A body that lets others run, and can be cancelled, however it arrives.

    Thousands of chunks may come in one segment, and reading those never waits.
    """

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = aiter(chunks)
        self._number = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self._number += 1
        if self._number % _CHUNKS_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.checkpoint()
        return await anext(self._chunks)


async def _error_page(response: httpx.Response) -> bytes:
    """The start of an error page; what goes wrong here does not change the status."""
    page = bytearray()
    left = anyio.current_effective_deadline() - anyio.current_time()
    seconds = min(_ERROR_PAGE_SECONDS, left / 2)
    with anyio.move_on_after(seconds), suppress(*FETCH_ERRORS):
        return await _decoded(response, BYTES_TO_READ, page)
    return bytes(page)


async def _close(response: httpx.Response) -> None:
    """Close, whatever else happens; that it fails says nothing about the answer."""
    with anyio.move_on_after(CLOSE_SECONDS, shield=True), suppress(Exception):
        await response.aclose()


def _caching_headers(response: httpx.Response) -> dict[str, str]:
    return {
        name: response.headers[name]
        for name in CACHING_HEADERS
        if name in response.headers
    }


def _summary(outcome: Outcome) -> str:
    """The outcome in a few words, without the body."""
    match outcome:
        case Answered():
            return f"status {outcome.status}, {len(outcome.body)} bytes"
        case BrokenRedirect() | Failed():
            return outcome.error[:_LONGEST_TEXT]
        case _:
            assert_never(outcome)
