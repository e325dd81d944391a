"""`robotsgate filter`: filters a list of URLs down to those an agent may fetch.

`check_many` would be slower, because it creates a verdict for each URL.

    a file ──► batches of lines, a few at a time
                   │ a checker or, with --responses, captures in WARC files
                   ▼
               in order, to stdout and to the files for rejected and unknown lines
"""

from __future__ import annotations

import functools
import json
import os
import re
import sqlite3
import stat
from contextlib import (
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from itertools import count
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import anyio
import click
from click.core import ParameterSource
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from robotsgate import (
    ArchivedResponse,
    InvalidURLError,
    Origin,
    RobotsArchive,
    RobotsChecker,
    RobotsTxt,
    UnsupportedError,
)
from robotsgate.archive import last_capture
from robotsgate.caching import printable
from robotsgate.cli._shell import (
    Agent,
    Exit,
    Settings,
    agent_option,
    complain,
    console,
    counted,
    fetching_options,
    from_variable,
    lines_of,
    note,
    tell_raw,
    text_of,
    with_dates,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from robotsgate import Verdict

# A batch is 64 KiB long, and takes ten times as much memory during processing.
_BATCHES_AT_ONCE = 5

# URL parsers drop or encode these. But a program that reads our output may end a line
# at them, as `str.splitlines` does, and take the rest for a URL that was checked.
_CONTROL = re.compile("[\0-\x1f\x85\u2028\u2029]")

_ONLY_TO_FETCH = ("user_agent", "store", "proxy", "timeout")


def _end_of(text: str) -> float:
    """A date in epoch seconds; a date without a time means the end of that day."""
    try:
        try:
            moment = datetime.combine(date.fromisoformat(text), time.max)
        except ValueError:
            moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(
            f"expected a date such as 2024-01-31 or 2024-01-31T12:00Z, got {text!r}"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _file_of_urls(name: str) -> BinaryIO:
    context = click.get_current_context()
    source: Any = click.File("rb").convert(name, None, context)  # closes it at the end
    if name != "-" and source.peek(5).startswith((b"WARC/", b"\x1f\x8b")):
        source.close()
        raise click.BadParameter(f"expected URLs; use --responses {name}")
    return cast("BinaryIO", source)


@click.command("filter")
@agent_option("agent", required=True, help="The crawler.", **from_variable("AGENT"))
@click.option(
    "--rejected",
    type=click.File("wb", lazy=False),
    metavar="FILE",
    help="Write all rejected lines to this file, each with the reason.",
)
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="Lines are JSON objects, in the input and in the --rejected file.",
)
@click.option(
    "--field",
    "url_field",
    default="url",
    show_default=True,
    metavar="NAME",
    help="The field of a JSON object that contains the URL.",
)
@click.option(
    "--max-origins",
    type=click.IntRange(min=1),
    # With this many real files, the whole program takes 122 MiB; a hostile file takes
    # at most 32 KiB.
    default=10_000,
    show_default=True,
    metavar="N",
    help="How many sites' parsed files to keep in memory.",
)
@click.option(
    "--responses",
    "files",
    multiple=True,
    metavar="FILE",
    help="Use the robots.txt responses in a WARC file instead of fetching;"
    " may be repeated.",
)
@click.option(
    "--as-of",
    type=_end_of,
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
@click.argument("source", type=_file_of_urls, default="-", metavar="[FILE]")
@fetching_options
def filter_(
    *,
    agent: Agent,
    rejected: IO[bytes] | None,
    is_json: bool,
    url_field: str,
    max_origins: int,
    files: tuple[str, ...],
    as_of: float | None,
    unknown: IO[bytes] | None,
    source: BinaryIO,
    settings: Settings,
) -> Exit:
    """Print the URLs in FILE that AGENT may fetch.

    Without a FILE, or with "-", URLs are read from stdin. The URLs keep their order.
    With more sites than --max-origins, group the URLs by site, because each change of
    site then takes time. Lines without a URL are counted and skipped, and the exit code
    is then 1. With --store, a later run can reuse the fetched files; without it, they
    are kept in a temporary folder.

    With --responses, archived responses are used instead of fetching. URLs on sites
    without an archived response are neither allowed nor rejected, and the exit code is
    then 3. A damaged file is read up to the damage, and the exit code is then 2. With
    --json, the date of the response is added to each object.

    \b
    Examples:
      robotsgate filter -a ExampleBot urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --store sqlite:///robots.db \\
        --rejected rejected.txt urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --json --field link < pages.jsonl
      robotsgate filter -a ExampleBot --responses robots.warc.gz \\
        --as-of 2024-01-31 --unknown unknown.txt urls.txt > allowed.txt
    """  # noqa: D301 (\b stops click from rewrapping)
    _check_usage(click.get_current_context())
    # Raises if `agent` is not a crawler's name, before any file is read.
    RobotsTxt.parse("", dialect=settings.dialect).rules_for(agent)
    work = _Filter(
        agent=agent,
        source=source,
        url_field=url_field if is_json else None,
        rejected=rejected,
        unknown=unknown,
        is_quiet=settings.is_quiet,
        counts=Counts(has_archive=bool(files)),
    )
    if not files:
        anyio.run(work.run, _stored_checker(settings, max_origins))
        return work.exit_code
    with closing(Captures(settings, as_of=as_of, max_origins=max_origins)) as captures:
        for file in files:
            captures.read(file)
        anyio.run(work.run, nullcontext(captures))
    return Exit.TROUBLE if captures.is_damaged else work.exit_code


def _check_usage(context: click.Context) -> None:
    given = [
        name
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    has_files = "files" in given
    for name in given:
        option = f"--{name.replace('_', '-')}"
        if has_files and name in _ONLY_TO_FETCH:
            raise click.UsageError(f"expected no {option} with --responses")
        if not has_files and name in {"as_of", "unknown"}:
            raise click.UsageError(f"expected --responses with {option}")


@asynccontextmanager
async def _stored_checker(
    settings: Settings, max_origins: int
) -> AsyncIterator[RobotsChecker]:
    with TemporaryDirectory(prefix="robotsgate-") as folder:
        # Origins that do not fit in memory must not be fetched twice.
        store = settings.store or f"sqlite:///{folder}/robots.db"
        stored = replace(settings, store=store)
        async with stored.checker(max_origins=max_origins) as checker:
            yield checker


@dataclass(slots=True)
class _Results:
    """The lines of a batch, in order; those rejected with their reasons."""

    allowed: list[bytes] = field(default_factory=list)
    rejected: list[bytes] = field(default_factory=list)
    unknown: list[bytes] = field(default_factory=list)
    urls: int = 0
    without_url: int = 0


@dataclass(kw_only=True)
class _Filter:
    """One run of the command."""

    agent: Agent
    source: BinaryIO
    url_field: str | None  # `None` if each line is a URL
    rejected: IO[bytes] | None
    unknown: IO[bytes] | None
    is_quiet: bool
    counts: Counts
    _answers: RobotsChecker | Captures = field(init=False)
    _show: Callable[[], None] = field(init=False)
    _places: anyio.Semaphore = field(init=False)

    @property
    def exit_code(self) -> Exit:
        if self.counts.unknown:
            return Exit.UNDECIDED
        return Exit.DISALLOWED if self.counts.without_url else Exit.ALLOWED

    async def run(
        self, answers: AbstractAsyncContextManager[RobotsChecker | Captures]
    ) -> None:
        total = _size_of(self.source)
        with progress(self.counts, total=total, is_quiet=self.is_quiet) as self._show:
            try:
                async with answers as self._answers:
                    await self._filter_lines()
            except BaseExceptionGroup as group:
                # Not `except*`: Python 3.11.2 would wrap this `raise` in a group, too.
                raise (group.subgroup(OSError) or group).exceptions[0] from group

    async def _filter_lines(self) -> None:
        """Filter a few batches of lines at a time, and print each after the last."""
        self._places = anyio.Semaphore(_BATCHES_AT_ONCE)
        previous = anyio.Event()
        previous.set()
        async with anyio.create_task_group() as tasks:
            async for lines, position in lines_of(self.source):
                await self._places.acquire()
                printed = anyio.Event()
                batch = (lines, position, previous, printed)
                tasks.start_soon(self._filter_batch, *batch)
                previous = printed

    async def _filter_batch(
        self,
        lines: list[bytes],
        position: int,
        previous: anyio.Event,
        printed: anyio.Event,
    ) -> None:
        results = await self._results(lines)
        await previous.wait()
        self._print(results)
        self.counts.position = position
        self._show()
        printed.set()
        self._places.release()

    def _print(self, results: _Results) -> None:
        counts = self.counts
        counts.urls += results.urls
        counts.without_url += results.without_url
        counts.allowed += len(results.allowed)
        counts.unknown += len(results.unknown)
        if isinstance(self._answers, RobotsChecker):
            stats = self._answers.stats
            counts.fetches = stats.fetches
            counts.failures = stats.unreachable + stats.refused
        tell_raw(b"".join([line + b"\n" for line in results.allowed]))
        for file, lines in (
            (self.rejected, results.rejected),
            (self.unknown, results.unknown),
        ):
            if file is not None:
                file.writelines(line + b"\n" for line in lines)
                file.flush()  # raises if the disk is full

    async def _results(self, lines: Iterable[bytes]) -> _Results:
        lines = [line for line in map(bytes.strip, lines) if line]
        questions = [self._question(line) for line in lines]
        urls = [url for url, _ in questions]
        answers = await self._answers.can_fetch_many(self.agent, urls)
        results = _Results()
        for line, (url, error), answer in zip(lines, questions, answers, strict=True):
            if answer and self.url_field is None:
                results.allowed.append(line)
            elif answer:
                results.allowed.append(self._dated(line, url))
            elif answer is None:
                results.unknown.append(line)
            else:
                await self._reject(line, url, error, results)
        results.urls = len(lines) - results.without_url
        return results

    def _question(self, line: bytes) -> tuple[str, str | None]:
        """The URL in `line` and `None`, or "" and the reason why there is no URL."""
        try:
            return self._url_in(text_of(line)), None
        except ValueError as error:
            return "", str(error)

    def _url_in(self, text: str) -> str:
        """The URL in a line; raises a ValueError if there is none."""
        url = text if self.url_field is None else self._url_in_object(text)
        if not url.isprintable() and _CONTROL.search(url.strip()):
            raise ValueError(
                f"expected a URL without control characters, got {url[:80]!r}"
            )
        return url

    def _url_in_object(self, text: str) -> str:
        try:
            url = json.loads(text)[self.url_field]
        except (ValueError, KeyError, TypeError, RecursionError):
            url = None
        # JSON may contain CRs, at which some readers end a line.
        if not isinstance(url, str) or "\r" in text:
            raise ValueError(
                f"expected a JSON object with a URL as {self.url_field!r}, on one line"
            )
        return url

    async def _reject(
        self, line: bytes, url: str, error: str | None, results: _Results
    ) -> None:
        """Add a rejected `line`; `error` says why it has no URL, if that is known."""
        verdict = None
        is_url = error is None
        if is_url:
            try:
                if self.rejected is None:
                    Origin.from_url(url)
                else:
                    verdict = await self._answers.check(self.agent, url)
            except InvalidURLError as invalid:
                is_url, error = False, str(invalid)
            except UnsupportedError as unsupported:
                error = str(unsupported)
        results.without_url += not is_url
        if self.rejected is not None:
            results.rejected.append(self._rejected_line(line, error, verdict))

    def _rejected_line(
        self, line: bytes, error: str | None, verdict: Verdict | None
    ) -> bytes:
        text = line.decode(errors="surrogateescape")
        if self.url_field is None:
            return f"{printable(text)}\t{printable(error or str(verdict))}".encode()
        shown = None if verdict is None else with_dates(verdict.as_dict())
        row = json.dumps({"line": text, "error": error, "verdict": shown}).encode()
        return self._dated(row, None if verdict is None else verdict.url)

    def _dated(self, line: bytes, url: str | None) -> bytes:
        """The JSON object in `line`, with the date of the capture if there is one."""
        if isinstance(self._answers, Captures):
            return self._answers.dated(line, url)
        return line


# --- Progress


@dataclass(slots=True, kw_only=True)
class Counts:
    """What has been printed so far."""

    has_archive: bool  # whether archived responses are used instead of fetching
    position: int = 0  # in the input, in bytes
    urls: int = 0
    without_url: int = 0  # lines
    allowed: int = 0
    unknown: int = 0  # URLs whose origin is not archived
    fetches: int = 0
    failures: int = 0

    def __str__(self) -> str:
        text = f"{counted(self.urls, 'URL')}, {self.allowed:,} allowed"
        if self.has_archive:
            text += f", {self.unknown:,} not archived"
        else:
            origins = counted(self.fetches, "origin")
            text += f", {origins} fetched, {self.failures:,} failed"
        if self.without_url:
            text += f"; {counted(self.without_url, 'line')} without a URL"
        return text


@contextmanager
def progress(
    counts: Counts, *, total: int | None, is_quiet: bool
) -> Iterator[Callable[[], None]]:
    """Show `counts` on stderr at the end, and continuously if stderr is a terminal.

    If stdout is a terminal as well, the counts are only shown at the end. `total` is
    the size of the input in bytes. Yields a function to call whenever the counts have
    changed.
    """
    terminal = console(on_stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),  # keeps the line within 80 columns
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=is_quiet or not terminal.is_terminal or console().is_terminal,
    )
    task = bar.add_task("", total=total)

    def show() -> None:
        rate = counts.urls / (bar.tasks[0].elapsed or 1)
        text = f"{counted(counts.urls, 'URL')}, {rate:,.0f}/s"
        if not counts.has_archive:
            origins = counted(counts.fetches, "origin")
            text += f", {origins}, {counts.failures:,} failed"
        bar.update(task, completed=counts.position, description=text)

    bar.start()
    try:
        yield show
    except OSError:  # the output is closed
        is_quiet = True
        raise
    finally:
        with suppress(OSError):  # the terminal is gone
            bar.stop()
        if not is_quiet:
            note(str(counts))


def _size_of(source: BinaryIO) -> int | None:
    """The size of `source` in bytes; `None` if unknown, for example for a pipe."""
    try:
        status = os.fstat(source.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


# --- Archived responses

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


class Captures:
    """Captures from WARC files, kept in an anonymous temporary file."""

    def __init__(
        self, settings: Settings, *, as_of: float | None, max_origins: int
    ) -> None:
        self._settings = settings
        self._as_of = as_of
        self._archive = RobotsArchive(
            self._find,
            policy=settings.policy,
            dialect=settings.dialect,
            max_origins=max_origins,
        )
        self._date_of = functools.lru_cache(max_origins)(self._fetched_at)
        self._database = sqlite3.connect("")
        self._database.executescript(_CREATE)
        self._numbers = count()
        self.is_damaged = False

    def close(self) -> None:
        self._database.close()

    def read(self, file: str) -> None:
        """Read `file` up to its first damage, and print a summary to stderr.

        Raises:
            ClickException: the extra is missing, or the file cannot be opened or read.
        """
        try:
            # Imported here because only --responses needs the extra.
            from robotsgate.integrations.warc import (  # noqa: PLC0415
                DamagedWarcError,
                responses,
            )
        except ImportError as error:
            raise click.ClickException(str(error)) from error
        try:
            with responses(file, policy=self._settings.policy) as captures:
                try:
                    self._database.executemany(_PUT, self._rows(captures))
                except DamagedWarcError as error:
                    self.is_damaged = True
                    complain(f"{file}: {error}")
                counts = captures.counts
        except (OSError, sqlite3.Error) as error:
            raise click.ClickException(f"{file}: {error}") from error
        if not self._settings.is_quiet:
            shown = counted(counts.captures, "capture")
            if counts.unreadable:
                shown += f", {counts.unreadable:,} unreadable"
            if counts.unfollowed_redirects:
                redirects = counted(counts.unfollowed_redirects, "unfollowed redirect")
                shown += f", {redirects}"
            note(f"{printable(file)}: {shown}")

    def _rows(
        self, captures: Iterable[tuple[str, ArchivedResponse]]
    ) -> Iterator[tuple[object, ...]]:
        for origin, one in captures:
            if last_capture([one], as_of=self._as_of) is not None:
                status = one.status or _UNREADABLE
                head = json.dumps([one.headers, one.redirects])
                number = next(self._numbers)
                yield origin, status, one.fetched_at, number, head, one.body

    def _find(self, origin: str) -> ArchivedResponse | None:
        captures = []
        for status, head, body, fetched_at in self._database.execute(_GET, [origin]):
            headers, redirects = json.loads(head)
            captures.append(
                ArchivedResponse(status or None, headers, body, redirects, fetched_at)
            )
        return last_capture(captures, policy=self._settings.policy)

    async def can_fetch_many(
        self, agent: Agent, urls: Sequence[str]
    ) -> list[bool | None]:
        return self._archive.can_fetch_many(agent, urls)

    async def check(self, agent: Agent, url: str) -> Verdict | None:
        return self._archive.check(agent, url)

    def dated(self, line: bytes, url: str | None) -> bytes:
        """The JSON object in `line`, plus the date of the capture used for `url`.

        The added field is null if there is no date.
        """
        date = None if url is None else self._date_of(str(Origin.from_url(url)))
        if _DATE.encode() in line:  # from an earlier run
            return json.dumps(json.loads(line) | {_DATE: date}).encode()
        return line[:-1] + f', "{_DATE}": {json.dumps(date)}}}'.encode()

    def _fetched_at(self, origin: str) -> Any:  # noqa: ANN401 (a JSON type)
        capture = self._find(origin)
        return None if capture is None else with_dates(capture.fetched_at, _DATE)
