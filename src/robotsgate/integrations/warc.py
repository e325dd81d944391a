"""Reads archived robots.txt responses from WARC files. Needs the warc extra."""

from __future__ import annotations

from robotsgate import ArchivedResponse, Policy, RobotsError
from robotsgate.archive import Hops
from robotsgate.fetching import CodingError
from robotsgate.integrations._wrapping import missing_extra
from robotsgate.urls import split_url

try:
    import fastwarc  # noqa: F401 (so that the error names the extra)
except ImportError as error:
    raise missing_extra("warc") from error

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self, TypeVar

from robotsgate.integrations._warc_http import stored_response, whole_body
from robotsgate.integrations._warc_index import (
    RESPONSE,
    REVISIT,
    CaptureIndex,
    date_of,
    index_rows,
    key_of,
    place,
)
from robotsgate.integrations._warc_records import Records

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from fastwarc.warc import WarcRecord

    from robotsgate import Origin
    from robotsgate.integrations._warc_http import StoredResponse

__all__ = ["DamagedWarcError", "WarcCounts", "WarcResponses", "responses"]

_T = TypeVar("_T")

_NOT_MODIFIED = 304
_PARTIAL_CONTENT = 206

# A crawler may cache a robots.txt for a day (RFC 9309 §2.4), so the capture of a
# redirect's target may be that old.
_DAY = 86_400.0
_SECOND = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WarcCounts:
    """The counters for a WARC file so far.

    Attributes:
        records: records of any type that were read.
        captures: responses that were returned.
        damaged: damaged places that were skipped; adjacent damaged records count as one
            place.
        unreadable: captures of a robots.txt that were skipped because they have no
            readable HTTP response.
        unresolved_revisits: captures of a robots.txt that were skipped because they
            only refer to a response that is not in the file.
        unfollowed_redirects: redirects to a URL that has no capture within a day of the
            redirect; if the file is not seekable, all redirects.
    """

    records: int = 0
    captures: int = 0
    damaged: int = 0
    unreadable: int = 0
    unresolved_revisits: int = 0
    unfollowed_redirects: int = 0


class DamagedWarcError(RobotsError):
    """The file has no WARC records, or it is damaged and not seekable.

    Attributes:
        counts: the counters at the time of the error.
    """

    def __init__(self, message: str, *, counts: WarcCounts) -> None:
        super().__init__(message)
        self.counts: WarcCounts = counts

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, which process pools need."""
        return partial(type(self), counts=self.counts), self.args


def responses(
    path_or_file: str | PathLike[str] | BinaryIO, *, policy: Policy = Policy()
) -> WarcResponses:
    """Iterate over all robots.txt captures in a WARC file, in order.

    Args:
        path_or_file: a path, or a file opened in binary mode; uncompressed, or
            compressed with gzip, zstd or LZ4. A seekable file is read twice.
        policy: the policy of the `RobotsArchive` that will use the responses; only
            `max_body_bytes` and `max_redirects` matter here.

    Raises:
        OSError: the file cannot be opened.
    """
    return WarcResponses(path_or_file, policy=policy)


class WarcResponses(Iterator[tuple[str, ArchivedResponse]]):
    """(origin, response) pairs, one for each capture of the origin's /robots.txt.

    The origin is `str(Origin.from_url(url))`. The response includes the capture's date
    and the redirects that were followed. If the body is truncated or cannot be decoded,
    a 2xx status becomes 206, which makes the origin unreachable.

    The iterator closes all its files at the end; if you stop earlier, call `close` or
    use the iterator as a context manager.

    Attributes:
        follows_redirects: whether redirects are followed, which requires a seekable
            file. Otherwise, the redirect responses themselves are returned.
    """

    def __init__(
        self, path_or_file: str | PathLike[str] | BinaryIO, *, policy: Policy
    ) -> None:
        """Open the file; see `responses`."""
        self._opened = ExitStack()
        if isinstance(path_or_file, str | PathLike):
            path_or_file = self._opened.enter_context(
                Path(path_or_file).open("rb")  # noqa: SIM115 (closed with the stack)
            )
        self._records = Records(path_or_file)
        self._policy = policy
        self._index: CaptureIndex | None = None
        self._tally: Counter[str] = Counter()
        self._pairs = self._read()
        self.follows_redirects: bool = self._records.is_seekable

    @property
    def counts(self) -> WarcCounts:
        """The counters so far."""
        return WarcCounts(
            records=self._records.count, damaged=self._records.damaged, **self._tally
        )

    def __next__(self) -> tuple[str, ArchivedResponse]:
        """Return the next pair.

        Raises:
            DamagedWarcError: no record can be read, or a record is damaged in a file
                that is not seekable.
            OSError: the file cannot be read.
        """
        return next(self._pairs)

    def __enter__(self) -> Self:
        """Return the iterator itself."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Call `close`."""
        self.close()

    def close(self) -> None:
        """End the iteration. A file that you passed in stays open."""
        self._pairs.close()
        self._opened.close()

    def _read(self) -> Generator[tuple[str, ArchivedResponse]]:
        try:
            if self._records.is_seekable:
                self._index = self._opened.enter_context(CaptureIndex())
                self._index.fill(self._records.each(index_rows))
                if self._records.damaged and not self._records.count:
                    raise DamagedWarcError(
                        "expected a WARC file, found no intact record",
                        counts=self.counts,
                    )
            for pair in self._records.each(self._capture):
                self._tally["captures"] += 1
                yield pair
        except OSError as error:
            if self._records.is_seekable:
                raise
            raise DamagedWarcError(
                f"expected intact records in a file that is not seekable: {error}",
                counts=self.counts,
            ) from error
        finally:
            self._opened.close()

    def _nearest(
        self,
        key: int,
        date: float | None,
        read: Callable[[WarcRecord], _T | None],
        *,
        within: float,
    ) -> _T | None:
        """The result of `read` for the nearest capture in the index."""

        def read_it(record: WarcRecord) -> _T | None:
            is_it = any(key == row[0] for row in index_rows(record))
            return read(record) if is_it else None

        if self._index is None:
            return None
        position = self._index.position(key, date, within=within)
        return None if position is None else self._records.read_at(position, read_it)

    def _capture(self, record: WarcRecord) -> Iterator[tuple[str, ArchivedResponse]]:
        """The pair for `record`, if it is a capture of a robots.txt."""
        origin, target = place(record)
        if origin is None or target != "/robots.txt":
            return
        response = self._response(record)
        if response is not None:
            date = date_of(record)
            yield origin.key, self._after_redirects(origin, response, date)
        elif record.record_type == REVISIT:
            self._tally["unresolved_revisits"] += 1
        else:
            self._tally["unreadable"] += 1

    def _after_redirects(
        self, origin: Origin, response: _Response, date: float | None
    ) -> ArchivedResponse:
        """Follow the redirects of `response` while the file contains the next hop."""
        hops = Hops(origin, policy=self._policy)
        redirects: Sequence[tuple[str, int]] = ()
        while _is_redirect(response.status) and hops.after(*response) is None:
            key = key_of(*split_url(hops.url))
            following = self._nearest(key, date, self._response, within=_DAY)
            if following is None:
                self._tally["unfollowed_redirects"] += 1
                break
            response, redirects = following, hops.redirects
        return ArchivedResponse(*response, redirects=redirects, fetched_at=date)

    def _response(self, record: WarcRecord) -> _Response | None:
        """The response in `record`; `None` if it is unreadable."""
        stored = stored_response(record)
        needs_original = (
            stored is None
            or stored.status == _NOT_MODIFIED
            or _is_success(stored.status)
        )
        if record.record_type == REVISIT and needs_original:
            return self._original(record, stored)
        return self._joined(stored, stored)

    def _original(
        self, revisit: WarcRecord, head: StoredResponse | None
    ) -> _Response | None:
        """The response that `revisit` refers to, with the revisit's `head`, if any."""

        def read(record: WarcRecord) -> _Response | None:
            is_response = record.record_type == RESPONSE
            return self._joined(head, stored_response(record)) if is_response else None

        response = None
        if record_id := revisit.headers.get("WARC-Refers-To"):
            response = self._nearest(hash(record_id), 0.0, read, within=math.inf)
        if response is None:
            origin, target = place(revisit, "WARC-Refers-To-Target-URI")
            date = date_of(revisit, "WARC-Refers-To-Date")
            if origin is not None and date is not None:
                key = key_of(origin, target)
                response = self._nearest(key, date, read, within=_SECOND)
        return response

    def _joined(
        self, head: StoredResponse | None, stored: StoredResponse | None
    ) -> _Response | None:
        """`stored` with the status and headers of `head`, unless `head` is a 304."""
        if stored is None:
            return None
        if head is None or head.status == _NOT_MODIFIED:
            head = stored
        max_bytes = self._policy.max_body_bytes + 1
        try:
            body = whole_body(stored, head.status, max_bytes=max_bytes)
        except CodingError:
            # For an error page, the status is enough.
            status = _PARTIAL_CONTENT if _is_success(head.status) else head.status
            return _Response(status, head.headers, b"")
        return _Response(head.status, head.headers, body)


class _Response(NamedTuple):
    """Status, headers and decoded body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def _is_redirect(status: int) -> bool:
    return 300 <= status <= 399  # noqa: PLR2004


def _is_success(status: int) -> bool:
    return 200 <= status <= 299  # noqa: PLR2004
