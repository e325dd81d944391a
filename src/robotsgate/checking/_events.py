"""What a checker tells its `on_event` callback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robotsgate.caching._access import AccessResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsTxtFetched:
    """The robots.txt of an origin was fetched, or could not be.

    Attributes:
        origin: the key of the origin.
        access: what that means.
        status: of the last response; `None` if there was none.
        redirects: those that were followed, in order: pairs (URL that was followed,
            cut at 2 KB; status of the response that led there).
        error: what went wrong; `None` if nothing.
        body_bytes: length of the body that was read, decoded, ≥ 0.
        elapsed_seconds: from the first step to the last, ≥ 0.
        next_fetch_at: when the origin will be fetched again at the earliest,
            epoch seconds.
    """

    origin: str
    access: AccessResult
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    error: str | None
    body_bytes: int
    elapsed_seconds: float
    next_fetch_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanged:
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
class StoreFailed:
    """A store could not do what it was asked; the checker went on without it.

    Attributes:
        origin: the key of the origin.
        operation: "get", "update", "delete", "acquire" or "release".
        error: what the store raised.
    """

    origin: str
    operation: str
    error: Exception


CheckerEvent = RobotsTxtFetched | AccessChanged | StoreFailed
