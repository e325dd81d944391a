"""What is known about one origin: the last answer, and the outage since.

Pure values; stores keep them as bytes (`_codec`).
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import FailureKind

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Redirects

# The clocks of a fleet without time synchronisation differ by less. A time that is
# further ahead was written by a clock that was set.
LARGEST_SKEW = 5 * 60.0

# Larger bodies are packed quickly: of 512,000 bytes, the best packing of a hostile
# one takes 50 ms, the quickest 11 ms, for a tenth to a third more bytes.
_MOST_BYTES_PACKED_WELL = 65_536


class PackedBody:
    """A robots.txt, compressed (zlib), at the end of bytes that may hold more.

    So an origin in memory and its entry in a `MemoryStore` share the same bytes.
    """

    __slots__ = ("_data", "_start")

    def __init__(self, data: bytes, start: int = 0) -> None:
        """Take what stands in `data` from `start` on."""
        self._data = data
        self._start = start

    @classmethod
    def of(cls, body: bytes) -> PackedBody:
        """Pack `body`."""
        is_large = len(body) > _MOST_BYTES_PACKED_WELL
        level = zlib.Z_BEST_SPEED if is_large else zlib.Z_DEFAULT_COMPRESSION
        return cls(zlib.compress(body, level))

    @property
    def unpacked(self) -> bytes:
        """The robots.txt."""
        return zlib.decompress(memoryview(self._data)[self._start :])

    def unpacked_within(self, max_bytes: int) -> bytes | None:
        """The robots.txt if it has at most `max_bytes`, ≥ 1; else `None`, soon."""
        data = memoryview(self._data)[self._start :]
        body = zlib.decompressobj().decompress(data, max_bytes + 1)
        return body if len(body) <= max_bytes else None

    def __bytes__(self) -> bytes:
        """The packed body alone."""
        return self._data[self._start :]

    def __len__(self) -> int:
        """How many bytes the packed body has."""
        return len(self._data) - self._start

    def __eq__(self, other: object) -> bool:
        """Whether `other` has the same bytes, wherever they stand."""
        return isinstance(other, PackedBody) and bytes(self) == bytes(other)

    def __hash__(self) -> int:
        """By the packed body alone."""
        return hash(bytes(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last thing that was said: by the server, or by the address guard.

    Attributes:
        access: SUCCESSFUL, UNAVAILABLE, RESTRICTED or REFUSED.
        answered_at: epoch seconds.
        fresh_until: the end of its freshness lifetime, epoch seconds.
        status: of the response; `None` if there was none.
        redirects: those that were followed.
        error: what was wrong, for people; `None` if nothing.
        packed: as much of the body as counts, and one byte more where it is longer;
            exactly with SUCCESSFUL.
    """

    access: AccessResult
    answered_at: float
    fresh_until: float
    status: int | None = None
    redirects: Redirects = ()
    error: str | None = None
    packed: PackedBody | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse an answer that would allow everything by accident.

        Raises:
            ValueError: there is a body without SUCCESSFUL, or the other way round,
                or UNREACHABLE, which is an outage and not an answer.
        """
        is_successful = self.access is AccessResult.SUCCESSFUL
        if is_successful != (self.packed is not None):
            raise ValueError(f"expected a body exactly with SUCCESSFUL, got {self!r}")
        if self.access is AccessResult.UNREACHABLE:
            raise ValueError(f"expected an answer, got {self!r}")

    def is_ahead(self, now: float) -> bool:
        """Whether a clock dated it that is ahead of ours, or ours was set back."""
        return self.answered_at > now + LARGEST_SKEW

    def is_fresh(self, now: float) -> bool:
        """Whether its freshness lifetime goes on."""
        return now < self.fresh_until and not self.is_ahead(now)


OVERRIDE = Answer(
    access=AccessResult.SUCCESSFUL,
    answered_at=-math.inf,
    fresh_until=math.inf,
    packed=PackedBody.of(b""),
)
"""The answer of an overridden origin.

The file itself stands in `LiveOrigins.overrides`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The fetches that have failed since the last answer.

    Attributes:
        since: when the first of them ended, epoch seconds; no date of the outage
            while `attempts` is 0.
        last_attempt_at: when the last of them ended, epoch seconds.
        retry_at: before this no fetch is made, epoch seconds.
        attempts: how many there were, ≥ 0; 0 where so far only our own side had
            no connection to spare, or no turn of the host in time.
        evidence_since: when the first of those ended that show that the origin is
            at fault (`is_evidence`), epoch seconds; `None` without.
        last_evidence_at: when the last of those ended, epoch seconds; `None`
            without.
        days: on how many different days (UTC) those ended, ≥ 0.
        failure: where the last one failed, or why none was made since; `None` if
            there was a response.
        status: of the last response; `None` if there was none.
        redirects: those that the last one followed.
        error: what went wrong in the last one, for people; `None` if there is
            nothing to say beside the status.
    """

    since: float
    last_attempt_at: float
    retry_at: float
    attempts: int
    evidence_since: float | None = None
    last_evidence_at: float | None = None
    days: int = 0
    failure: FailureKind | None = None
    status: int | None = None
    redirects: Redirects = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is known about one origin.

    Attributes:
        origin: scheme, host and port, without a default port.
        terms: under which it was fetched (`_terms`).
        answer: the last one; `None` if there was none yet.
        outage: since that answer; `None` if it was the last word.
    """

    origin: str
    terms: str = ""
    answer: Answer | None = None
    outage: Outage | None = None

    def __post_init__(self) -> None:
        """Refuse an entry that says nothing.

        Raises:
            ValueError: there is neither an answer nor an outage.
        """
        if self.answer is None and self.outage is None:
            raise ValueError(f"expected an answer or an outage of {self.origin!r}")

    @property
    def access(self) -> AccessResult:
        """Of the last fetch."""
        if self.outage is not None:
            return AccessResult.UNREACHABLE
        return cast("Answer", self.answer).access

    @property
    def checked_at(self) -> float:
        """When the last fetch ended, epoch seconds."""
        if self.outage is not None:
            return self.outage.last_attempt_at
        return cast("Answer", self.answer).answered_at

    @property
    def next_fetch_at(self) -> float:
        """When the origin is fetched again at the earliest, epoch seconds."""
        if self.outage is not None:
            return self.outage.retry_at
        return cast("Answer", self.answer).fresh_until

    @property
    def is_put_off(self) -> bool:
        """Whether the next fetch is late only because it waits for a turn."""
        return self.outage is not None and self.outage.failure is FailureKind.TURN

    def is_current(self, now: float) -> bool:
        """Whether it answers questions at `now` without another fetch.

        An entry from the future does not, because our clock was set back, and
        nobody can tell for how long it has been standing.
        """
        return self.checked_at - LARGEST_SKEW <= now < self.next_fetch_at
