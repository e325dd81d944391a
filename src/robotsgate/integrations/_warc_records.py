"""Reads the records in a WARC file in order, skipping damaged ones.

fastwarc finds the records, but it stops at the first damaged one, and treats a
truncated file as complete. So this module works out where to continue:

    record ── record ── error, or the file ends within a record ── damaged += 1
      ▲                                                               │
      └──────── the next member or line that starts with WARC/ ◀──────┘
"""

from __future__ import annotations

import io
import os
import re
import zlib
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from fastwarc.warc import ArchiveIterator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fastwarc.warc import WarcRecord

_T = TypeVar("_T")

_BLOCK = 65_536

# A compressed block decodes to at most a thousand times its length.
_BLOCK_TO_DECODE = 4_096

_WINDOW_GZIP = 31
_GZIP = b"\x1f\x8b\x08"
_RECORD = b"WARC/"
_END_OF_HEAD = b"\r\n\r\n"
_MEMBER = re.compile(_GZIP + rb"|(?<=\n)" + _RECORD)
_PADDING = b"\0\t\n\r "
_OVERLAP = 8
"""In bytes; longer than any match of `_MEMBER` plus the line ending before it."""


class Records:
    """The records in a file, which can be read more than once if the file is seekable.

    Attributes:
        is_seekable: whether the file is seekable.
        count: how many records have been read so far in the latest pass.
        damaged: how many damaged places have been skipped so far in the latest pass;
            adjacent damaged records count as one place.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.is_seekable = file.seekable()
        self._start = file.tell() if self.is_seekable else 0
        self.count = 0
        self.damaged = 0

    def each(self, read: Callable[[WarcRecord], Iterable[_T]]) -> Iterator[_T]:
        """Yield the results of `read` for each undamaged record.

        Damage in a gzip member may only become apparent at the end of its record, so
        the results for each record are held back until the next record is found.

        Raises:
            OSError: a record is damaged, and the file is not seekable.
        """
        self.count = self.damaged = 0
        start: int | None = self._start
        is_damage_counted = False
        while start is not None:
            position, content_length, is_broken = start, -1, False
            answers: list[_T] = []
            try:
                for record in self._from(start):
                    yield from answers
                    position, content_length = record.stream_pos, record.content_length
                    answers = []
                    answers = list(read(record))
                    self.count += 1
                    is_damage_counted = False
            except OSError:
                if not self.is_seekable:
                    self.damaged += 1
                    raise
                is_broken = True
            if not self.is_seekable:
                yield from answers
                return
            end = self._end(position, content_length)
            if not is_broken or end is not None:
                yield from answers
            start = self._next_start(position + 1 if end is None else end)
            if is_broken or end is None or self._bytes(end).strip(_PADDING):
                self.damaged += not is_damage_counted
                is_damage_counted = True

    def read_at(
        self, position: int, read: Callable[[WarcRecord], _T | None]
    ) -> _T | None:
        """The result of `read` for the record at a `position` found by `each`.

        In a gzip member with several records, positions are not exact, so the result
        may be for another record, or `None`.
        """
        try:
            record = next(self._from(position), None)
            return None if record is None else read(record)
        except OSError:
            return None

    def _from(self, position: int) -> ArchiveIterator:
        source = _From(self._file, position, is_seekable=self.is_seekable)
        return ArchiveIterator(source, parse_http=False, fsspec_args=False)

    def _bytes(self, position: int, count: int = _BLOCK) -> bytes:
        self._file.seek(position)
        return self._file.read(count)

    def _end(self, position: int, content_length: int) -> int | None:
        """The end of the record at `position`; `None` if it is damaged or truncated.

        With compression other than gzip, this is the end of the file.
        """
        start = self._bytes(position)
        size = self._file.seek(0, os.SEEK_END)
        if start.startswith(_RECORD):
            head = start.partition(_END_OF_HEAD)[0]
            end = position + len(head) + len(_END_OF_HEAD) + content_length
            return end if content_length >= 0 and end <= size else None
        return self._end_of_member(position) if start.startswith(_GZIP) else size

    def _end_of_member(self, position: int) -> int | None:
        inflate = zlib.decompressobj(_WINDOW_GZIP)
        while block := self._bytes(position, _BLOCK_TO_DECODE):
            position += len(block)
            try:
                inflate.decompress(block)
            except zlib.error:
                return None
            if inflate.eof:
                return position - len(inflate.unused_data)
        return None

    def _next_start(self, position: int) -> int | None:
        """The start of the next record at or after `position`."""
        while len(block := self._bytes(position)) > _OVERLAP:
            for match in _MEMBER.finditer(block):
                if self._begins_record(position + match.start()):
                    return position + match.start()
            position += len(block) - _OVERLAP
        return None

    def _begins_record(self, position: int) -> bool:
        start = self._bytes(position, _BLOCK_TO_DECODE)
        if start.startswith(_GZIP):
            try:
                start = zlib.decompressobj(_WINDOW_GZIP).decompress(start, len(_RECORD))
            except zlib.error:
                return False
        return start.startswith(_RECORD)


class _From(io.RawIOBase):
    """Reads a file from `position` on, even if other code moves the file position.

    It has its own `tell`, because fastwarc crashes if `tell` fails, as it does on a
    pipe.
    """

    def __init__(self, file: BinaryIO, position: int, *, is_seekable: bool) -> None:
        super().__init__()
        self._file = file
        self._position = position
        self._is_seekable = is_seekable

    def read(self, size: int = -1, /) -> bytes:
        if self._is_seekable:
            self._file.seek(self._position)
        block = self._file.read(size)
        self._position += len(block)
        return block

    def tell(self) -> int:
        return self._position
