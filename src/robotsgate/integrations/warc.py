"""Reads archived robots.txt responses from WARC files. Needs the warc extra."""

from __future__ import annotations

from robotsgate import ArchivedResponse, InvalidURLError, Policy, RobotsError
from robotsgate.archive import Hops
from robotsgate.integrations._wrapping import missing_extra
from robotsgate.urls import split_url

try:
    import fastwarc  # noqa: F401 (so that the error names the extra)
except ImportError as error:
    raise missing_extra("warc") from error

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO, Self

from fastwarc.warc import WarcRecordType

from robotsgate.integrations._warc_http import stored_response
from robotsgate.integrations._warc_index import ResponseIndex, key_of
from robotsgate.integrations._warc_records import Records

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from fastwarc.warc import WarcRecord

    from robotsgate import Origin
    from robotsgate.integrations._warc_http import StoredResponse

__all__ = ["DamagedWarcError", "WarcCounts", "WarcResponses", "responses"]

_RESPONSE = WarcRecordType.response
_REVISIT = WarcRecordType.revisit


@dataclass(frozen=True, slots=True, kw_only=True)
class WarcCounts:
    """The counters for a WARC file so far.

    Attributes:
        records: records of any type that were read.
        captures: captures of a robots.txt that were returned.
        unreadable: captures among these that are unreadable: a revisit, or a response
            that is not HTTP or has incomplete headers.
        unfollowed_redirects: redirects to a URL that has no response within a day of
            the redirect.
        members_without_record: intact gzip members that were skipped because they do
            not contain a record.
    """

    records: int = 0
    captures: int = 0
    unreadable: int = 0
    unfollowed_redirects: int = 0
    members_without_record: int = 0


class DamagedWarcError(RobotsError):
    """The file is damaged, or is not a WARC file.

    All captures before the damage have been returned.

    Attributes:
        offset: where the damaged record or gzip member begins, in bytes from the
            beginning of the file; with zstd or LZ4, a position before the damage.
        counts: the counters at the time of the error.
    """

    def __init__(self, message: str, *, offset: int, counts: WarcCounts) -> None:
        super().__init__(message)
        self.offset: int = offset
        self.counts: WarcCounts = counts

    def __reduce__(self) -> tuple[object, ...]:
        """Support pickling, which process pools need."""
        made_by = partial(type(self), offset=self.offset, counts=self.counts)
        return made_by, self.args


def responses(
    path_or_file: str | PathLike[str] | BinaryIO, *, policy: Policy = Policy()
) -> WarcResponses:
    """Iterate over all robots.txt captures in a WARC file, in order.

    Args:
        path_or_file: a path, or a file opened in binary mode; uncompressed, or
            compressed with gzip, zstd or LZ4. The file is read twice; a file that is
            not seekable, such as a pipe, is first copied to a temporary file.
        policy: the policy of the `RobotsArchive` that will use the responses; only
            `max_body_bytes` and `max_redirects` matter here.

    Raises:
        OSError: the file cannot be opened or read.
    """
    return WarcResponses(path_or_file, policy=policy)


class WarcResponses(Iterator[tuple[str, ArchivedResponse]]):
    """(origin, response) pairs, one for each capture of the origin's /robots.txt.

    The origin is `str(Origin.from_url(url))`. The response includes the capture's date
    and the redirects that were followed. If the body is truncated or cannot be decoded,
    a 2xx status becomes 206, which makes the origin unreachable. If the capture is
    unreadable, the status is `None`, and a `RobotsArchive` returns `None`.

    The iterator closes all its files at the end; if you stop earlier, call `close` or
    use the iterator as a context manager.
    """

    def __init__(
        self, path_or_file: str | PathLike[str] | BinaryIO, *, policy: Policy
    ) -> None:
        """Open the file; see `responses`."""
        with ExitStack() as opened:
            if isinstance(path_or_file, str | PathLike):
                path_or_file = opened.enter_context(Path(path_or_file).open("rb"))
            if not path_or_file.seekable():
                copy = opened.enter_context(TemporaryFile())
                shutil.copyfileobj(path_or_file, copy)
                copy.seek(0)
                path_or_file = copy
            self._records = Records(path_or_file)
            self._index = opened.enter_context(ResponseIndex())
            self._opened = opened.pop_all()
        self._policy = policy
        self._tally: Counter[str] = Counter()
        self._pairs = self._read()

    @property
    def counts(self) -> WarcCounts:
        """The counters so far."""
        return WarcCounts(
            records=self._records.count,
            members_without_record=self._records.without_record,
            **self._tally,
        )

    def __next__(self) -> tuple[str, ArchivedResponse]:
        """Return the next pair.

        Raises:
            DamagedWarcError: the file is damaged here.
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
        with self._opened:
            self._index.fill(self._index_rows())
            for record in self._records.intact():
                origin, target = _place(record)
                if origin is not None and target == "/robots.txt":
                    self._tally["captures"] += 1
                    yield origin.key, self._capture(record, origin)
            if self._records.damage is not None:
                raise DamagedWarcError(
                    f"expected an intact WARC record at byte {self._records.end}:"
                    f" {self._records.damage}",
                    offset=self._records.end,
                    counts=self.counts,
                )

    def _index_rows(self) -> Iterator[tuple[int, float, int]]:
        for position, record in self._records.first_pass():
            origin, target = _place(record)
            is_response = record.record_type == _RESPONSE
            if origin is not None and is_response and position is not None:
                yield key_of(origin, target), _date_of(record) or 0.0, position

    def _capture(self, record: WarcRecord, origin: Origin) -> ArchivedResponse:
        """The response in `record`, after the redirects that the file can follow."""
        date = _date_of(record)
        response = self._response(record)
        if response is None:
            self._tally["unreadable"] += 1
            return ArchivedResponse(None, fetched_at=date)
        hops = Hops(origin, policy=self._policy)
        redirects: Sequence[tuple[str, int]] = ()
        while hops.after(*response) is None:
            following = self._nearest(hops.url, date)
            if following is None:
                self._tally["unfollowed_redirects"] += 1
                break
            response, redirects = following, hops.redirects
        return ArchivedResponse(*response, redirects=redirects, fetched_at=date)

    def _nearest(self, url: str, date: float | None) -> StoredResponse | None:
        """The response for `url` that is nearest to `date`."""
        key = key_of(*split_url(url))
        position = self._index.position(key, date, end=self._records.end)
        return None if position is None else self._response(self._records.at(position))

    def _response(self, record: WarcRecord) -> StoredResponse | None:
        if record.record_type == _REVISIT:
            return None
        return stored_response(record, max_bytes=self._policy.max_body_bytes + 1)


def _place(record: WarcRecord) -> tuple[Origin | None, str]:
    """The origin and target of the URL, if `record` is a capture."""
    if record.record_type not in (_RESPONSE, _REVISIT):
        return None, ""
    try:
        # Some writers put the URL in angle brackets.
        return split_url((record.headers.get("WARC-Target-URI") or "").strip("<>"))
    except InvalidURLError:
        return None, ""


def _date_of(record: WarcRecord) -> float | None:
    """The date in epoch seconds, ≥ 0; `None` if it is missing or invalid."""
    try:
        date = datetime.fromisoformat(record.headers.get("WARC-Date") or "")
    except ValueError:
        return None
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds >= 0 else None
