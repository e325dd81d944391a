"""Reads the records of a WARC file up to the first damage.

fastwarc parses the records. It stops at an empty gzip member and takes a file that was
cut off for a complete one, so this module reads gzip members itself, and the first pass
reads every record to its end.

Nothing looks for a record inside damaged data: a page's body, which its site controls,
may contain a record that looks like another site's robots.txt.
"""

from __future__ import annotations

import io
import os
import sys
import zlib
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from fastwarc.warc import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastwarc.warc import WarcRecord

_BLOCK = 8_192  # most gzip members with a robots.txt are shorter
_WINDOW_GZIP = 31
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_RECORD = b"WARC/"
_END_OF_RECORD = b"\r\n\r\n"


class Records:
    """The records in a seekable file, from its current position on.

    Attributes:
        count: how many records the latest pass has read so far.
        without_record: how many intact gzip members without a record the latest pass
            has skipped so far.
        damage: what is wrong with the file; `None` if the first pass found no damage.
        end: where the damaged record or gzip member begins, in bytes; with zstd or LZ4,
            a position before the damage.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = self._offset = file.tell()
        beginning = file.read(len(_RECORD))
        self._is_gzip = beginning.startswith(_GZIP)
        self._is_plain = beginning.startswith(_RECORD)
        self._is_zip = beginning.startswith(_ZIP)
        self._intact = 0
        self.count = self.without_record = 0
        self.damage: str | None = None
        self.end = sys.maxsize

    def first_pass(self) -> Iterator[tuple[int | None, WarcRecord]]:
        """Yield (position, record) for each record, including a damaged one at the end.

        The position is for `at`; `None` if the record cannot be read on its own.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            for position, record in self._each():
                yield position, record
                _read_to_end(record)
        except (EOFError, OSError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.damage, self.end = str(error), self._offset

    def intact(self) -> Iterator[WarcRecord]:
        """Yield the records before the damage, after the first pass."""
        intact, without_record = self._intact, self.without_record
        for _, record in islice(self._each(), intact):
            yield record
        # This pass ends at the last intact record; only the first one goes further.
        self.count, self.without_record = intact, without_record

    def at(self, position: int) -> WarcRecord:
        """The record at a `position` from the first pass."""
        content = (_Member if self._is_gzip else _From)(self._file, position)
        return next(_parser(content))

    def _each(self) -> Iterator[tuple[int | None, WarcRecord]]:
        self.count = self._intact = self.without_record = 0
        self._offset = self._start
        if self._is_zip:
            raise EOFError("this is a ZIP file, such as a WACZ")
        yield from self._each_in_members() if self._is_gzip else self._each_in_file()
        self._intact = self.count

    def _each_in_members(self) -> Iterator[tuple[int | None, WarcRecord]]:
        size = self._file.seek(0, os.SEEK_END)
        while self._offset < size:
            member = _Member(self._file, self._offset)
            self._intact = self.count
            try:
                for record in _parser(member):
                    is_first = self.count == self._intact
                    self.count += 1
                    yield self._offset if is_first else None, record
            except OSError as error:  # from fastwarc: not a record
                if error.errno is not None or self.count > self._intact:
                    raise
            self._offset = member.end()
            self.without_record += self.count == self._intact
        if self.without_record and not self.count:
            self._offset = self._start
            raise EOFError("no gzip member contains a record")

    def _each_in_file(self) -> Iterator[tuple[int | None, WarcRecord]]:
        for record in _parser(_From(self._file, self._start)):
            # Only now is it clear that the last record ended where it should.
            self._intact = self.count
            self.count += 1
            self._offset = record.stream_pos
            yield self._offset if self._is_plain else None, record
        if self._is_plain:
            self._file.seek(-len(_END_OF_RECORD), os.SEEK_END)
            if self._file.read() != _END_OF_RECORD:
                raise EOFError("the record is cut off")


def _read_to_end(record: WarcRecord) -> None:
    length = record.content_length  # 0 if fastwarc cannot read it
    if record.headers.get("Content-Length") != str(length):
        raise EOFError("the record has no valid Content-Length")
    if record.consume() < length:
        raise EOFError("the record is cut off")


def _parser(content: _From | _Member) -> ArchiveIterator:
    return ArchiveIterator(
        content,
        parse_http=False,
        fsspec_args=False,
        stream_detect=isinstance(content, _From),  # a member's content is decompressed
    )


class _From(io.RawIOBase):
    """Reads a file from `position` on, even if other code moves the file position."""

    def __init__(self, file: BinaryIO, position: int) -> None:
        super().__init__()
        self._file = file
        self._position = position

    def read(self, size: int = -1, /) -> bytes:
        self._file.seek(self._position)
        block = self._file.read(size)
        self._position += len(block)
        return block

    def tell(self) -> int:
        return self._position


class _Member(io.RawIOBase):
    """Reads the content of the gzip member at `position`."""

    def __init__(self, file: BinaryIO, position: int) -> None:
        super().__init__()
        self._file = _From(file, position)
        self._inflate = zlib.decompressobj(_WINDOW_GZIP)

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes; none at the end of the member.

        Raises:
            EOFError: the member is cut off.
            zlib.error: the member is damaged.
        """
        content = b""
        while not content and not self._inflate.eof:
            block = self._inflate.unconsumed_tail or self._file.read(_BLOCK)
            content = self._inflate.decompress(block, size)
            if not (block or content):
                raise EOFError("the gzip member is cut off")
        return content

    def tell(self) -> int:
        return 0  # fastwarc crashes without it

    def end(self) -> int:
        """Read to the end of the member; its position in the file."""
        while self.read(_BLOCK):
            pass
        return self._file.tell() - len(self._inflate.unused_data)
