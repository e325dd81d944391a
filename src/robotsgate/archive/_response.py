"""Archived responses, and the outcome of a fetch that uses them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from robotsgate.caching._hops import AddressRefusedError, FetchGuard, Hops
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.robotstxt._headers import pairs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.urls._url import Origin


@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """One archived response to a GET of a robots.txt.

    Attributes:
        status: 100 to 999; for FTP, the reply code (226 or 550); `None` if the capture
            is unreadable, for which a `RobotsArchive` returns `None`.
        headers: (name, value) pairs in the order they were received; a mapping is also
            accepted. Only Location and Retry-After can affect a result.
        body: the content, with any chunking and compression removed. The body may be
            truncated after `Policy.max_body_bytes`.
        redirects: the redirects that led to this response, in order, as pairs (absolute
            target URL, status from 300 to 399), like `Verdict.redirects`. Not needed if
            the redirect responses are archived too, because `RobotsArchive` follows
            those itself.
        fetched_at: when the response was received, in epoch seconds, ≥ 0; `None` if
            unknown.

    Raises:
        TypeError: a value has the wrong type.
        ValueError: a number is out of range.
    """

    status: int | None
    headers: HeadersLike = ()
    body: bytes = field(default=b"", repr=False)
    redirects: Sequence[tuple[str, int]] = ()
    fetched_at: float | None = None

    def __post_init__(self) -> None:
        """Check each value."""
        if self.status is not None:
            _check_status("status", self.status, lowest=100, highest=999)
        object.__setattr__(self, "headers", tuple(pairs_of(self.headers)))
        if not isinstance(self.body, bytes):
            raise TypeError(
                f"expected body to be bytes, got {type(self.body).__name__}"
            )
        object.__setattr__(self, "redirects", tuple(map(_redirect, self.redirects)))
        if self.fetched_at is not None:
            _check_date(self.fetched_at)


def archived_outcome(
    origin: Origin,
    response: ArchivedResponse,
    *,
    find: Callable[[str], ArchivedResponse | None],
    policy: Policy,
) -> Outcome:
    """The outcome of a fetch of `origin` whose first response is `response`.

    If a redirect leads to another origin, `find` returns that origin's response. All
    responses have a status.
    """
    hops = Hops(origin, policy=policy)
    guard = FetchGuard(policy)
    responses = _hop_by_hop(response)
    while True:
        try:
            guard.check_host(hops.origin.host)
        except AddressRefusedError as error:
            return Outcome(
                failure=FailureKind.ADDRESS_REFUSED,
                error=f"{type(error).__name__}: {error}",
                redirects=hops.redirects,
            )
        following = next(responses, None)
        if following is None:
            key = hops.origin.key
            is_kept = hops.url == hops.origin.robots_url
            other = find(key) if is_kept else None
            if other is None:
                return Outcome(
                    failure=FailureKind.OTHER,
                    error=f"the archive has no record of {hops.url}",
                    redirects=hops.redirects,
                )
            responses = _hop_by_hop(other)
            following = next(responses)
        outcome = hops.after(*following)
        if outcome is not None:
            return outcome


def _hop_by_hop(
    response: ArchivedResponse,
) -> Iterator[tuple[int, HeadersLike, bytes]]:
    """The status, headers and body of each redirect in order, then of `response`."""
    for url, status in response.redirects:
        yield status, [("location", url)], b""
    yield cast("int", response.status), response.headers, response.body


def _redirect(pair: object) -> tuple[str, int]:
    match pair:
        case (str(url), int(status)):
            _check_status("status of a redirect", status, lowest=300, highest=399)
            return url, status
        case _:
            raise TypeError(
                f"expected redirects to be (URL, status) pairs, got {pair!r}"
            )


def _check_status(name: str, status: object, *, lowest: int, highest: int) -> None:
    if isinstance(status, bool) or not isinstance(status, int):
        raise TypeError(f"expected {name} to be an int, got {status!r}")
    if not lowest <= status <= highest:
        raise ValueError(
            f"expected {name} to be from {lowest} to {highest}, got {status!r}"
        )


def _check_date(date: object) -> None:
    if isinstance(date, bool) or not isinstance(date, int | float):
        raise TypeError(f"expected fetched_at in epoch seconds, got {date!r}")
    if not 0 <= date < math.inf:
        raise ValueError(
            f"expected fetched_at to be finite and 0 or more, got {date!r}"
        )
