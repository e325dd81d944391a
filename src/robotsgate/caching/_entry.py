"""What is known about one origin: the value that stores keep."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robotsgate.caching._access import AccessResult
from robotsgate.caching._policy import AddressGuard

if TYPE_CHECKING:
    from robotsgate.caching._outcome import FailureKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The last robots.txt that was fetched successfully.

    Attributes:
        packed: the body, compressed (zlib).
        fetched_at: when it came, epoch seconds.
        fresh_until: the end of its freshness lifetime, epoch seconds.
    """

    packed: bytes = field(repr=False)
    fetched_at: float
    fresh_until: float

    @classmethod
    def of(cls, body: bytes, *, fetched_at: float, fresh_until: float) -> Copy:
        """Pack `body`."""
        return cls(
            packed=zlib.compress(body), fetched_at=fetched_at, fresh_until=fresh_until
        )

    @property
    def body(self) -> bytes:
        """The whole lines of the robots.txt, as far as the policy's limit."""
        return zlib.decompress(self.packed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known about one origin.

    Attributes:
        origin: scheme, host and port, without a default port: the key.
        access: what the last attempt came to.
        checked_at: when the last attempt ended, epoch seconds.
        next_fetch_at: before this no new attempt is made, epoch seconds: the end
            of freshness, or the retry of an unreachable origin.
        retain_until: from then on nothing can use the entry, epoch seconds;
            infinite where the policy never lets go of a copy.
        status: of the last response; `None` if there was none.
        redirects: that the last attempt followed, ≥ 0.
        error: what went wrong in the last attempt; `None` if nothing.
        failure: where it failed; `None` if there was a response.
        copy: the last good copy, while anything could still use it.
        unreachable_since: when the first of the failures in a row came, epoch
            seconds; `None` unless `access` is unreachable.
        terms: what of the policy decided what could be got, see `terms_of`.
        is_first_sight: whether the origin has failed since it was first seen, as far
            as this tells: what others know of an answer before it counts.
        failures: failed attempts in a row, those not counted where no connection
            was free in the caller's pool, ≥ 0.
    """

    origin: str
    access: AccessResult
    checked_at: float
    next_fetch_at: float
    retain_until: float
    status: int | None = None
    redirects: int = 0
    error: str | None = None
    failure: FailureKind | None = None
    copy: Copy | None = None
    unreachable_since: float | None = None
    failures: int = 0
    terms: str = AddressGuard.REDIRECTS.value
    is_first_sight: bool = False

    def __post_init__(self) -> None:
        """Refuse an entry that would allow everything by accident.

        Raises:
            ValueError: a successful entry has no copy.
        """
        if self.access is AccessResult.SUCCESSFUL and self.copy is None:
            message = f"expected a copy in the successful entry of {self.origin!r}"
            raise ValueError(message)
