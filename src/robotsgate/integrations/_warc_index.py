"""Finds captures in a WARC file by URL and by record ID."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from fastwarc.warc import WarcRecordType

from robotsgate import InvalidURLError
from robotsgate.urls import split_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fastwarc.warc import WarcRecord

    from robotsgate import Origin

RESPONSE = WarcRecordType.response
REVISIT = WarcRecordType.revisit

_CREATE = """
    PRAGMA journal_mode = OFF;
    CREATE TABLE capture (key INTEGER, date REAL, position INTEGER);
"""
_INSERT = "INSERT INTO capture VALUES (?, ?, ?)"
_SORT = "CREATE INDEX by_key ON capture (key, date, position)"
_NEAREST = """
    SELECT position FROM capture
    WHERE key = :key AND date BETWEEN :date - :within AND :date + :within
    ORDER BY abs(date - :date), position DESC LIMIT 1
"""


class CaptureIndex(AbstractContextManager["CaptureIndex"]):
    """The keys, dates and positions of captures, in an anonymous temporary file.

    However many captures there are, SQLite keeps only a few megabytes in memory.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.executescript(_CREATE)

    def __exit__(self, *exc_info: object) -> None:
        self._database.close()

    def fill(self, rows: Iterable[tuple[int, float, int]]) -> None:
        """Add all `rows`, as returned by `index_rows`."""
        self._database.executemany(_INSERT, rows)
        self._database.execute(_SORT)

    def position(self, key: int, date: float | None, *, within: float) -> int | None:
        """The position of the capture nearest to `date`, at most `within` seconds away.

        If several captures are equally near, the last one in the file is used. A
        missing date is treated as 1970.
        """
        values = {"key": key, "date": date or 0.0, "within": within}
        row = self._database.execute(_NEAREST, values).fetchone()
        return None if row is None else row[0]


def index_rows(record: WarcRecord) -> Iterator[tuple[int, float, int]]:
    """A capture's index rows (key, date, position), keyed by URL and by record ID."""
    origin, target = place(record)
    if origin is not None:
        date, position = date_of(record) or 0.0, record.stream_pos
        yield key_of(origin, target), date, position
        if record.record_type == RESPONSE:
            yield hash(record.headers.get("WARC-Record-ID")), date, position


def place(
    record: WarcRecord, header: str = "WARC-Target-URI"
) -> tuple[Origin | None, str]:
    """The origin and target of the URL in `header`, if `record` is a capture."""
    if record.record_type not in (RESPONSE, REVISIT):
        return None, ""
    try:
        # Some writers put the URL in angle brackets.
        return split_url((record.headers.get(header) or "").strip("<>"))
    except InvalidURLError:
        return None, ""


def key_of(origin: Origin, target: str) -> int:
    """A URL's key, regardless of percent-encoding; only valid within this process."""
    return hash((origin.key, unquote_to_bytes(target)))


def date_of(record: WarcRecord, header: str = "WARC-Date") -> float | None:
    """A record's date in epoch seconds, ≥ 0; `None` if it is missing or invalid."""
    try:
        date = datetime.fromisoformat(record.headers.get(header) or "")
    except ValueError:
        return None
    seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return seconds if seconds >= 0 else None
