"""Finds responses in a WARC file by URL and date."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robotsgate import Origin

# A crawler may cache a robots.txt for a day (RFC 9309 §2.4), so the capture of a
# redirect's target may be that old.
_DAY = 86_400.0

_CREATE = """
    PRAGMA journal_mode = OFF;
    CREATE TABLE response (key INTEGER, date REAL, position INTEGER);
"""
_INSERT = "INSERT INTO response VALUES (?, ?, ?)"
_SORT = "CREATE INDEX by_key ON response (key, date, position)"
_NEAREST = """
    SELECT position FROM response
    WHERE key = :key AND date BETWEEN :date - :day AND :date + :day AND position < :end
    ORDER BY abs(date - :date), position DESC LIMIT 1
"""


class ResponseIndex(AbstractContextManager["ResponseIndex"]):
    """The URLs, dates and positions of responses, in an anonymous temporary file.

    However many responses there are, SQLite keeps only a few megabytes in memory.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.executescript(_CREATE)

    def __exit__(self, *exc_info: object) -> None:
        self._database.close()

    def fill(self, rows: Iterable[tuple[int, float, int]]) -> None:
        """Add rows (`key_of` the URL, date or 0, position)."""
        self._database.executemany(_INSERT, rows)
        self._database.execute(_SORT)

    def position(self, key: int, date: float | None, *, end: int) -> int | None:
        """The position before `end` of the response nearest to `date`, within a day.

        If several responses are equally near, the last one in the file is used. A
        missing date is treated as 1970.
        """
        values = {"key": key, "date": date or 0.0, "day": _DAY, "end": end}
        row = self._database.execute(_NEAREST, values).fetchone()
        return None if row is None else row[0]


def key_of(origin: Origin, target: str) -> int:
    """A URL's key, regardless of percent-encoding; only valid within this process."""
    return hash((origin.key, unquote_to_bytes(target)))
