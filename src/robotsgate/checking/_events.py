"""The events that a checker gives to its `on_event` callback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.checking._listener import Event

if TYPE_CHECKING:
    from robotsgate.caching._access import AccessResult
    from robotsgate.caching._outcome import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStarted(Event):
    """A fetch of a robots.txt begins; `RobotsTxtFetched` or `FetchCancelled` follows.

    Attributes:
        origin: the key of the origin.
    """

    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCancelled(Event):
    """A fetch ended without an outcome.

    Either the checker was closed, or the caller's client raised an error such as
    TypeError, which is a mistake in the program.

    Attributes:
        origin: the key of the origin.
        elapsed_seconds: since the fetch began, ≥ 0.
    """

    origin: str
    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsTxtFetched(Event):
    """The robots.txt of an origin was fetched, or could not be.

    Attributes:
        origin: the key of the origin.
        access: what the fetch means.
        status: that of the last response; `None` if there was none.
        redirects: those that were followed, in order: pairs (URL that was followed,
            cut at 2 KB; status of the response that led there).
        headers: of the last response, pairs (lower-case name, value): Content-Type,
            and those that decide how long the answer counts.
        failure: where the fetch failed; `None` if there was a response.
        error: what went wrong; `None` if nothing.
        body_bytes: how many decoded bytes of the body were read, ≥ 0.
        elapsed_seconds: since the fetch began, ≥ 0.
        next_fetch_at: when the origin will be fetched again at the earliest,
            epoch seconds.
    """

    origin: str
    access: AccessResult
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    headers: tuple[tuple[str, str], ...]
    failure: FailureKind | None
    error: str | None
    body_bytes: int
    elapsed_seconds: float
    next_fetch_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanged(Event):
    """A fetch means something else than the one before.

    Attributes:
        origin: the key of the origin.
        before: what the previous fetch meant.
        after: what this one means.
    """

    origin: str
    before: AccessResult
    after: AccessResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed(Event):
    """An operation of a store failed; the checker went on without it.

    Attributes:
        origin: the key of the origin; empty for "purge", which is about all origins.
        operation: "get", "update", "delete", "acquire", "release" or "purge".
        error: what the store raised.
    """

    origin: str
    operation: str
    error: Exception


CheckerEvent = (
    FetchStarted | FetchCancelled | RobotsTxtFetched | AccessChanged | StoreFailed
)
