"""Archived responses from WARC files for `robotsgate filter`; no network access.

WARC files ──► the last capture for each origin and status, on disk
                   │ for each URL's origin, the capture that applies
                   ▼
               RobotsArchive
"""

from __future__ import annotations

import functools
import json
import sqlite3
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from itertools import count
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from robotsgate import ArchivedResponse, Origin, RobotsArchive
from robotsgate.archive import last_capture
from robotsgate.caching import printable
from robotsgate.cli._shell import complain, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from robotsgate import Verdict
    from robotsgate.cli._options import Settings
    from robotsgate.integrations.warc import WarcCounts

_Result = TypeVar("_Result")

# Only the status tells a failure from an answer, so the last capture for each status
# is enough to find the one that applies, whatever the policy.
_CREATE = """
    PRAGMA journal_mode = OFF;
    CREATE TABLE capture (
        origin TEXT, status INTEGER, date REAL, number INTEGER, head TEXT, body BLOB,
        PRIMARY KEY (origin, status)
    );
"""
_PUT = """
    INSERT INTO capture VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (origin, status) DO UPDATE SET
        date = excluded.date, number = excluded.number,
        head = excluded.head, body = excluded.body
    WHERE ifnull(excluded.date, -1) >= ifnull(date, -1)
"""
_GET = """
    SELECT status, head, body, date FROM capture
    WHERE origin = ? ORDER BY number
"""

# The status of an unreadable capture; SQLite treats all NULLs as different.
_UNREADABLE = 0

_DATE = "robots_txt_fetched_at"

_ONLY_TO_FETCH = ("user_agent", "store", "proxy", "timeout")
_ONLY_WITH_RESPONSES = ("as_of", "unknown", "more_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """The archived responses to use.

    Attributes:
        files: the names of the WARC files.
        as_of: the latest capture time to use, in epoch seconds; `None` for no limit.
    """

    files: Sequence[str]
    as_of: float | None


class Captures(AbstractContextManager["Captures"]):
    """robots.txt captures in an anonymous temporary file.

    Attributes:
        are_complete: whether all files were read to their end.
    """

    def __init__(self, settings: Settings, *, max_origins: int) -> None:
        """Start empty; keep up to `max_origins` parsed files in memory."""
        self._policy = settings.policy
        self._is_quiet = settings.is_quiet
        self._archive = RobotsArchive(
            self._find,
            policy=settings.policy,
            dialect=settings.dialect,
            max_origins=max_origins,
        )
        self._database = sqlite3.connect("")
        self._database.executescript(_CREATE)
        self._numbers = count()
        self._max_origins = max_origins
        self._dates: dict[str, float | None] = {}
        self.are_complete = True

    def __exit__(self, *exc_info: object) -> None:
        """Delete the file."""
        self._database.close()

    def read(self, responses: Responses) -> None:
        """Read each file up to its first damage, and print a summary to stderr.

        Raises:
            ClickException: the extra is missing, or a file cannot be opened or read.
        """
        for file in responses.files:
            counts = self._read(file, as_of=responses.as_of)
            if not self._is_quiet:
                note(f"{printable(file)}: {_text_of(counts)}")

    async def can_fetch_many(
        self, agent: str | tuple[str, ...], urls: Sequence[str]
    ) -> list[bool | None]:
        """See `RobotsArchive.can_fetch_many`."""
        return self._archive.can_fetch_many(agent, urls)

    async def check(self, agent: str | tuple[str, ...], url: str) -> Verdict | None:
        """See `RobotsArchive.check`."""
        return self._archive.check(agent, url)

    def dated(self, line: bytes, url: str | None) -> bytes:
        """The JSON object in `line`, plus the date of the capture used for `url`.

        The added field contains epoch seconds, or null if there is no date.
        """
        date = None if url is None else self._fetched_at(url)
        if _DATE.encode() in line:  # from an earlier run
            return json.dumps(json.loads(line) | {_DATE: date}).encode()
        return line[:-1] + f', "{_DATE}": {json.dumps(date)}}}'.encode()

    def _fetched_at(self, url: str) -> float | None:
        origin = url[: url.find("/", 8)]
        if origin not in self._dates:
            origin = str(Origin.from_url(url))
        if origin not in self._dates:
            self._find(origin)
        return self._dates[origin]

    def _read(self, file: str, *, as_of: float | None) -> WarcCounts:
        try:
            # Imported here because only --responses needs the extra.
            from robotsgate.integrations.warc import (  # noqa: PLC0415
                DamagedWarcError,
                responses,
            )
        except ImportError as error:
            raise click.ClickException(
                "--responses needs the warc extra: pip install 'robotsgate[cli,warc]'"
            ) from error
        try:
            with responses(file, policy=self._policy) as captures:
                try:
                    self._database.executemany(_PUT, self._rows(captures, as_of=as_of))
                except DamagedWarcError as error:
                    self.are_complete = False
                    complain(f"{file}: {error}")
                return captures.counts
        except (OSError, sqlite3.Error) as error:
            raise click.ClickException(f"{file}: {error}") from error

    def _rows(
        self, captures: Iterable[tuple[str, ArchivedResponse]], *, as_of: float | None
    ) -> Iterator[tuple[object, ...]]:
        for origin, one in captures:
            if last_capture([one], as_of=as_of) is not None:
                head = json.dumps([one.headers, one.redirects])
                number = next(self._numbers)
                yield (
                    origin,
                    one.status or _UNREADABLE,
                    one.fetched_at,
                    number,
                    head,
                    one.body,
                )

    def _find(self, origin: str) -> ArchivedResponse | None:
        rows = self._database.execute(_GET, [origin]).fetchall()
        if not rows:
            return None
        captures = []
        for status, head, body, fetched_at in rows:
            headers, redirects = json.loads(head)
            captures.append(
                ArchivedResponse(status or None, headers, body, redirects, fetched_at)
            )
        chosen = last_capture(captures, policy=self._policy)
        if len(self._dates) >= self._max_origins:
            self._dates.clear()
        self._dates[origin] = None if chosen is None else chosen.fetched_at
        return chosen


def responses_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Add the options for archived responses; `command` receives them as `responses`.

    `responses` is `None` if the command has to fetch. The open file for --unknown is
    passed as `unknown`.
    """

    @click.option(
        "--responses",
        "files",
        multiple=True,
        metavar="FILE",
        help="Use the robots.txt responses in a WARC file instead of fetching."
        " More FILEs may follow.",
    )
    @click.option(
        "--as-of",
        callback=_end_of,
        metavar="DATE",
        help="Ignore responses after this day or time, in UTC unless it has an offset."
        " Default: use all responses.",
    )
    @click.option(
        "--unknown",
        type=click.File("wb", lazy=False),
        metavar="FILE",
        help="Write lines whose site has no archived response to this file.",
    )
    @click.argument("more_files", nargs=-1, metavar="[FILE]...")
    @functools.wraps(command)
    def with_responses(
        *,
        files: tuple[str, ...],
        as_of: float | None,
        unknown: IO[bytes] | None,
        more_files: tuple[str, ...],
        **others: Any,  # noqa: ANN401 (the command's options)
    ) -> _Result:
        for name in _ONLY_TO_FETCH if files else _ONLY_WITH_RESPONSES:
            _refuse(name, has_responses=bool(files))
        responses = Responses(files=files + more_files, as_of=as_of) if files else None
        return command(responses=responses, unknown=unknown, **others)

    return with_responses


def _refuse(name: str, *, has_responses: bool) -> None:
    """Raise an error if the argument `name` was passed.

    Raises:
        UsageError: the argument was passed.
    """
    context = click.get_current_context()
    if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
        return
    if name == "more_files":
        argument = context.params[name][0]
        raise click.UsageError(f"expected URLs on stdin, got argument {argument!r}")
    option = f"--{name.replace('_', '-')}"
    if has_responses:
        raise click.UsageError(f"expected no {option} with --responses")
    raise click.UsageError(f"expected --responses with {option}")


def _end_of(
    _context: click.Context, _option: click.Parameter, value: str | None
) -> float | None:
    """`value` in epoch seconds; a date without a time means the end of that day."""
    if value is None:
        return None
    try:
        try:
            moment = datetime.combine(date.fromisoformat(value), time.max)
        except ValueError:
            moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            f"expected a date such as 2024-01-31 or 2024-01-31T12:00Z, got {value!r}"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _text_of(counts: WarcCounts) -> str:
    """The counts as one human-readable line, omitting zeros."""
    return ", ".join(
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in asdict(counts).items()
        if number or name == "captures"
    )
