"""Reads archived robots.txt responses from WARC files. Needs the warc extra.

fastwarc parses the records. Its own gzip reader stops at an empty member and takes a
file that was cut off for a complete one, so this module decompresses gzip itself.

Some crawlers store decoded bodies with the original headers: Common Crawl did so until
August 2018, and its news crawl until May 2019. So a body is only decompressed if its
first bytes look compressed.
"""

from __future__ import annotations

from robotsgate import ArchivedResponse, InvalidURLError, Policy, RobotsError
from robotsgate.archive import Hops
from robotsgate.errors import needs_extra
from robotsgate.fetching import Body, CodingError, as_pairs
from robotsgate.urls import split_url

with needs_extra("warc"):
    from fastwarc.warc import ArchiveIterator, WarcRecordType

import io
import re
import shutil
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote_to_bytes

import h11

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from fastwarc.warc import WarcRecord

    from robotsgate import Origin

__all__ = ["DamagedWarcError", "WarcCounts", "WarcResponses", "responses"]

_RESPONSE = WarcRecordType.response
_REVISIT = WarcRecordType.revisit

_Stored = tuple[int, list[tuple[str, str]], bytes]
"""Status (100 to 999), headers as pairs (name, value), and decoded body."""

# A crawler may cache a robots.txt for a day (RFC 9309 §2.4), so the capture of a
# redirect's target may be that old.
_DAY = 86_400.0

# However many responses there are, SQLite keeps only a few megabytes in memory.
_CREATE = """
    PRAGMA journal_mode = OFF;
    CREATE TABLE response (key INTEGER, date REAL, position INTEGER);
    CREATE INDEX by_key ON response (key, date, position);
"""
_INSERT = "INSERT INTO response VALUES (?, ?, ?)"
_NEAREST = """
    SELECT position FROM response
    WHERE key = :key AND date BETWEEN :date - :day AND :date + :day AND position < :end
    ORDER BY abs(date - :date), position DESC LIMIT 1
"""

_BLOCK = 8_192  # most gzip members with a robots.txt are shorter
_WINDOW_GZIP = 31
_GZIP = b"\x1f\x8b"
_RECORD = b"WARC/"

_PARTIAL_CONTENT = 206
_LONGEST_HEAD = 100 * 1024  # the same as for a fetch
_STATUS = re.compile(rb"HTTP/\S*[ \t]+([1-9][0-9]{2})(?![^ \t\r\n])")
_LENGTH = re.compile(r"[0-9]+")
_LABEL = "content-encoding"
_GZIP_CODINGS = {"gzip", "x-gzip"}

_START = 64
"""How many bytes are enough to tell whether a body is compressed or has chunks."""
_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,16}[ \t]*(?:;[^\r\n]*)?\r?\n")
_HEAD_BEFORE_CHUNKS = b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class WarcCounts:
    """The counters for a WARC file so far.

    Attributes:
        captures: captures of a robots.txt that were returned.
        unreadable: captures among these that are unreadable: a revisit, or a response
            that is not HTTP or has incomplete headers.
        unfollowed_redirects: redirects to a URL that has no response within a day of
            the redirect.
    """

    captures: int = 0
    unreadable: int = 0
    unfollowed_redirects: int = 0


class DamagedWarcError(RobotsError):
    """The file is damaged, or is not a WARC file.

    Attributes:
        offset: where the damaged record or gzip member begins, in bytes from the
            beginning of the file; with zstd or LZ4, a position before the damage.
            All captures before it have been returned.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.offset: int = offset

    def __str__(self) -> str:
        """Return a sentence with the reason and the offset."""
        reason, offset = self.args
        return f"expected an intact WARC record at byte {offset}: {reason}"


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


class WarcResponses(
    AbstractContextManager["WarcResponses"], Iterator[tuple[str, ArchivedResponse]]
):
    """(origin, response) pairs, one for each capture of the origin's /robots.txt.

    The origin is `str(Origin.from_url(url))`. The response includes the capture's date
    and the redirects that were followed. If the body is truncated or cannot be decoded,
    a 2xx status becomes 206, which makes the origin unreachable. If the capture is
    unreadable, the status is `None`, and a `RobotsArchive` returns `None`.

    The iterator closes all its files at the end; if you stop earlier, call `close` or
    use the iterator as a context manager.

    Attributes:
        counts: the counters so far.
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
            # An anonymous temporary file.
            index = sqlite3.connect("", check_same_thread=False)
            self._index = opened.enter_context(closing(index))
            self._opened = opened.pop_all()
        self._file = path_or_file
        self._start = self._end = path_or_file.tell()
        self._intact = 0
        self._policy = policy
        self.counts: WarcCounts = WarcCounts()
        self._pairs = self._read()

    def __next__(self) -> tuple[str, ArchivedResponse]:
        """Return the next pair.

        Raises:
            DamagedWarcError: the file is damaged here.
            OSError: the file cannot be read.
        """
        return next(self._pairs)

    def __exit__(self, *exc_info: object) -> None:
        """Call `close`."""
        self.close()

    def close(self) -> None:
        """End the iteration. A file that you passed in stays open."""
        self._pairs.close()
        self._opened.close()

    def _read(self) -> Generator[tuple[str, ArchivedResponse]]:
        with self._opened:
            damage = self._first_pass()
            content = _Content(self._file, self._start)
            for record in islice(content.records(), self._intact):
                origin, target = _place(record)
                if origin is not None and target == "/robots.txt":
                    self.counts.captures += 1
                    yield origin.key, self._capture(record, origin)
            if damage is not None:
                raise DamagedWarcError(damage, self._end)

    def _first_pass(self) -> str | None:
        """Read and index each record to its end; return what is wrong with the file.

        Nothing looks for records after the damage: a page's body, which its site
        controls, may contain a record that looks like another site's robots.txt.
        """
        self._index.executescript(_CREATE)
        content = _Content(self._file, self._start)
        seen = 0
        try:
            for record in content.records():
                position = content.position_of(record)
                if position > self._end:
                    self._end, self._intact = position, seen
                seen += 1
                if record.record_type == _RESPONSE and content.can_return_to(record):
                    date = _date_of(record) or 0.0
                    self._index.execute(
                        _INSERT, (_key(*_place(record)), date, position)
                    )
                # fastwarc takes a length that it cannot read for 0.
                is_whole = str(record.consume()) == record.headers.get("Content-Length")
                if not is_whole or content.position_of(record) != position:
                    return "the record is cut off, or has no valid length"
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            # Without gzip, the length of the record before the damage may be wrong.
            if content.member > self._end:
                self._end, self._intact = content.member, seen
            return str(error)
        self._end, self._intact = sys.maxsize, seen
        return None

    def _capture(self, record: WarcRecord, origin: Origin) -> ArchivedResponse:
        """The response in `record`, after the redirects that the file can follow."""
        date = _date_of(record)
        response = _response_in(record, self._policy)
        if response is None:
            self.counts.unreadable += 1
            return ArchivedResponse(None, fetched_at=date)
        hops = Hops(origin, policy=self._policy)
        redirects: Sequence[tuple[str, int]] = ()
        while hops.after(*response, is_archived=True) is None:
            following = self._nearest(hops.url, date)
            if following is None:
                self.counts.unfollowed_redirects += 1
                break
            response, redirects = following, hops.redirects
        return ArchivedResponse(*response, redirects=redirects, fetched_at=date)

    def _nearest(self, url: str, date: float | None) -> _Stored | None:
        """The response for `url` that is nearest to `date`, within a day.

        If several responses are equally near, the last one in the file is used. A
        missing date is treated as 1970.
        """
        key = _key(*split_url(url))
        values = {"key": key, "date": date or 0.0, "day": _DAY, "end": self._end}
        row = self._index.execute(_NEAREST, values).fetchone()
        if row is None:
            return None
        return _response_in(next(_Content(self._file, *row).records()), self._policy)


class _Content(io.RawIOBase):
    """The content of a file from `position` on, with gzip members as one stream.

    The file position may change between two calls.

    Attributes:
        member: where the current gzip member begins; without gzip, `position`.
    """

    def __init__(self, file: BinaryIO, position: int) -> None:
        super().__init__()
        self._file = file
        self._position = position
        self._beginning = self._block(len(_RECORD))
        self._position = self.member = position
        self._is_gzip = self._beginning.startswith(_GZIP)
        self._inflate = zlib.decompressobj(_WINDOW_GZIP)
        self._waiting = b""
        self._offset = self._member_offset = position  # as fastwarc counts them

    def records(self) -> ArchiveIterator:
        """The records; read each one before the next."""
        return ArchiveIterator(
            self, parse_http=False, fsspec_args=False, stream_detect=not self._is_gzip
        )

    def position_of(self, record: WarcRecord) -> int:
        """Where `record`, the latest one, or its gzip member begins in the file."""
        return self.member if self._is_gzip else record.stream_pos

    def can_return_to(self, record: WarcRecord) -> bool:
        """Whether `record`, the latest one, is the first one from its position on."""
        if self._is_gzip:
            return record.stream_pos == self._member_offset
        return self._beginning == _RECORD  # with zstd and LZ4, positions are not exact

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes, and not from two gzip members."""
        if not self._is_gzip:
            return self._block(size)
        content = b""
        while not content:
            if self._inflate.eof:
                self.member = self._position - len(self._waiting)
                self._member_offset = self._offset
                self._inflate = zlib.decompressobj(_WINDOW_GZIP)
            self._waiting = self._waiting or self._block(_BLOCK)
            if not self._waiting:
                if self._position > self.member:
                    raise EOFError("the gzip member is cut off")
                break
            content = self._inflate.decompress(self._waiting, size)
            self._waiting = self._inflate.unconsumed_tail or self._inflate.unused_data
        self._offset += len(content)
        return content

    def _block(self, size: int) -> bytes:
        self._file.seek(self._position)
        block = self._file.read(size)
        self._position += len(block)
        return block


def _place(record: WarcRecord) -> tuple[Origin | None, str]:
    """The origin and target of the URL, if `record` is a capture."""
    if record.record_type not in (_RESPONSE, _REVISIT):
        return None, ""
    try:
        # Some writers put the URL in angle brackets.
        return split_url((record.headers.get("WARC-Target-URI") or "").strip("<>"))
    except InvalidURLError:
        return None, ""


def _key(origin: Origin | None, target: str) -> int:
    """A URL's hash, regardless of percent-encoding; only valid within this process."""
    return hash((origin, unquote_to_bytes(target)))


def _date_of(record: WarcRecord) -> float | None:
    """The date in epoch seconds, ≥ 0; `None` if it is missing or invalid."""
    try:
        date = datetime.fromisoformat(record.headers.get("WARC-Date") or "")
    except ValueError:
        return None
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds >= 0 else None


def _response_in(record: WarcRecord, policy: Policy) -> _Stored | None:
    """The response in `record`; `None` if it is unreadable.

    A body is cut off one byte after the limit. If it is incomplete or corrupt, it is
    empty, and a 2xx status becomes 206; with any other status, the status is enough.
    """
    first, *lines = _head(record) or [b""]
    match = _STATUS.match(first)
    if match is None or record.record_type == _REVISIT:
        return None
    fields = [line.partition(b":") for line in lines]
    headers = as_pairs([(n.strip(), value.strip()) for n, sep, value in fields if sep])
    status, body = int(match[1]), b""
    try:
        most = policy.max_body_bytes + 1
        body = _whole_body(status, headers, _pieces(record), max_bytes=most)
    except CodingError:
        status = _PARTIAL_CONTENT if 200 <= status <= 299 else status  # noqa: PLR2004
    return status, headers, body


def _head(record: WarcRecord) -> list[bytes]:
    """The lines up to the first empty one; none if that is missing or too far away."""
    lines: list[bytes] = []
    left = _LONGEST_HEAD
    while left > 0 and (line := record.reader.readline(left)):
        if line in {b"\r\n", b"\n"}:
            return lines
        lines.append(line)
        left -= len(line)
    return []


def _whole_body(
    status: int,
    headers: list[tuple[str, str]],
    pieces: Iterator[bytes],
    *,
    max_bytes: int,
) -> bytes:
    """The decoded body in `pieces`, or as much of it as `status` requires."""
    if Body(status, (), max_bytes=max_bytes).is_over:
        return b""
    values = {name.lower(): value.lower() for name, value in headers}
    is_chunked = "chunked" in values.get("transfer-encoding", "")
    labels = [value.lower() for name, value in headers if name.lower() == _LABEL]
    codings = [one.strip() for one in ",".join(labels).split(",")]
    start, pieces = _beginning(pieces)
    if is_chunked and (not start or _CHUNK.match(start)):
        start, pieces = _beginning(_without_chunks(pieces))
    others = [one for one in codings if one not in _GZIP_CODINGS]
    is_decoded = others != codings and start != b"" and not start.startswith(_GZIP)
    left = ",".join(others if is_decoded else codings)
    body = Body(status, [(_LABEL, left)], max_bytes=max_bytes)
    for piece in pieces:
        body.feed(piece)
        if body.is_over:
            return bytes(body)
    body.finish()
    length = values.get("content-length", "")
    is_length_of_body = not is_chunked and not is_decoded and _LENGTH.fullmatch(length)
    if is_length_of_body and body.raw_bytes < float(length):  # `int` could raise
        raise CodingError(f"expected {float(length):.0f} bytes, got {body.raw_bytes}")
    return bytes(body)


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    yield from iter(partial(record.reader.read, _BLOCK), b"")
    if "WARC-Truncated" in record.headers or "WARC-Segment-Number" in record.headers:
        raise CodingError("the crawler has truncated or split the response")


def _beginning(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of `pieces`, and an iterator over all the pieces."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= _START:
            break
    return start, chain([start], pieces)


def _without_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "")]))
    connection.send(h11.EndOfMessage())
    try:
        for piece in chain([_HEAD_BEFORE_CHUNKS], filter(None, pieces)):
            connection.receive_data(piece)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.EndOfMessage):
                    return
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
    except h11.RemoteProtocolError as error:
        raise CodingError(str(error)) from error
    raise CodingError("the last chunk is missing")
