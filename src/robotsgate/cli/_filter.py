"""`robotsgate filter`: of very many URLs, those that an agent may fetch.

Lines are answered in batches, several at a time. `check_many` would cost more, because
it makes a verdict for each URL. Batches are printed in order: a slow origin delays the
output of later batches, but not their fetches.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING

import anyio
import click
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from robotsgate import InvalidURLError, RobotsTxt, UnsupportedError
from robotsgate.caching import printable
from robotsgate.cli._options import Settings, agent_of, fetching_options
from robotsgate.cli._shell import (
    LONGEST_LINE,
    Exit,
    blocks_of_lines,
    console,
    note,
    tell_raw,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anyio.streams.memory import MemoryObjectReceiveStream

    from robotsgate import RobotsChecker

# Each batch has 64 KiB; together they have some ten thousand URLs.
_BATCHES_AHEAD = 8

# With the batches and the program itself, these take less than 80 MiB. A store in a
# temporary file has the other origins, so that none is fetched twice.
_MOST_ORIGINS = 2_000


@click.command("filter")
@click.option("-a", "--agent", required=True, metavar="AGENT", help="The crawler.")
@click.option(
    "--rejected",
    type=click.File("w", encoding="utf-8", errors="backslashreplace", lazy=False),
    metavar="FILE",
    help="A file for the other lines, each with its reason.",
)
@click.option(
    "--json", "is_json", is_flag=True, help="Each line is a JSON object, also of FILE."
)
@click.option(
    "--field",
    "url_field",
    default="url",
    show_default=True,
    metavar="NAME",
    help="The name under which a JSON object has its URL.",
)
@fetching_options
def filter_(
    *,
    agent: str,
    rejected: IO[str] | None,
    is_json: bool,
    url_field: str,
    settings: Settings,
) -> Exit:
    """Which URLs of stdin may AGENT fetch?

    Prints them in their order. This is fastest if the URLs of one site stand together.
    A line without a URL does not stop the command, but is counted, and makes it exit
    with 1. With --store, a second run does not fetch again what the first one fetched;
    without it, a temporary folder keeps the files.

    \b
    Examples:
      robotsgate filter -a ExampleBot < urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --store sqlite:///robots.db \\
        --rejected rejected.txt < urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --json --field link < pages.jsonl
    """  # noqa: D301 (click's mark for a paragraph to keep as it is)
    named = agent_of(agent)
    RobotsTxt.parse("").rules_for(named)  # refuses what names no crawler
    work = _Filter(named, rejected=rejected, url_field=url_field if is_json else None)
    anyio.run(work.run, settings)
    return Exit.DISALLOWED if work.counts.without_url else Exit.ALLOWED


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Some lines, and what is printed about them.

    Attributes:
        lines: as they came, without their ends.
        position: how many bytes of stdin were read up to their end.
        answered_event: set when the attributes below are there.
        count: how many lines have a URL.
        without_url: how many lines have none, without blank ones.
        allowed: the lines for stdout.
        rejected: the lines for the file of rejected lines.
    """

    lines: list[bytes]
    position: int
    answered_event: anyio.Event = field(default_factory=anyio.Event)
    count: int = 0
    without_url: int = 0
    allowed: list[bytes] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)


class _Filter:
    """One run of the command.

    Attributes:
        counts: how far it has come.
    """

    def __init__(
        self,
        agent: str | tuple[str, ...],
        *,
        rejected: IO[str] | None,
        url_field: str | None,
    ) -> None:
        """Prepare.

        Args:
            agent: the crawler.
            rejected: gets the other lines; `None`: nothing does.
            url_field: the name under which a JSON object has its URL; `None`: each
                line is a URL.
        """
        self._agent = agent
        self._rejected = rejected
        self._url_field = url_field
        self.counts = Counts()

    async def run(self, settings: Settings) -> None:
        """Filter stdin to stdout."""
        send, receive = anyio.create_memory_object_stream[_Batch](_BATCHES_AHEAD)
        with (
            TemporaryDirectory(prefix="robotsgate-") as folder,
            progress(self.counts, is_quiet=settings.is_quiet) as show,
        ):
            store = f"sqlite:///{folder}/robots.db"
            async with settings.checker(
                store=store, max_origins=_MOST_ORIGINS
            ) as checker:
                try:
                    # It is closed last: a batch that nobody could receive any more
                    # would be an error besides the one that ended the printing.
                    async with receive, anyio.create_task_group() as tasks:
                        tasks.start_soon(self._print_all, receive, checker, show)
                        async with send:
                            async for lines, position in blocks_of_lines():
                                batch = _Batch(lines=lines, position=position)
                                tasks.start_soon(self._answer, batch, checker)
                                await send.send(batch)
                except* OSError as group:
                    raise group.exceptions[0] from group

    async def _print_all(
        self,
        batches: MemoryObjectReceiveStream[_Batch],
        checker: RobotsChecker,
        show: Callable[[], None],
    ) -> None:
        """Print the batches in order, each as soon as it is answered."""
        async for batch in batches:
            await batch.answered_event.wait()
            tell_raw(batch.allowed)
            if self._rejected is not None:
                self._rejected.write("".join(batch.rejected))
                self._rejected.flush()  # raises if the disk is full
            stats = checker.stats
            self.counts.position = batch.position
            self.counts.urls += batch.count
            self.counts.without_url += batch.without_url
            self.counts.allowed += len(batch.allowed)
            self.counts.fetches = stats.fetches
            self.counts.failures = stats.unreachable + stats.refused
            show()

    async def _answer(self, batch: _Batch, checker: RobotsChecker) -> None:
        lines = [line for line in map(bytes.strip, batch.lines) if line]
        questions = [self._question(line) for line in lines]
        urls = [url for url, _ in questions]
        answers = await checker.can_fetch_many(self._agent, urls)
        for line, (url, error), answer in zip(lines, questions, answers, strict=True):
            if answer:
                batch.allowed.append(line)
                continue
            why = error or _why_no_url(url, checker)
            batch.without_url += why is not None
            if self._rejected is not None:
                batch.rejected.append(await self._rejection(checker, line, url, why))
        batch.count = len(lines) - batch.without_url
        batch.answered_event.set()

    def _question(self, line: bytes) -> tuple[str, str | None]:
        """The URL in `line` and `None`, or "" and why `line` has no URL."""
        if len(line) > LONGEST_LINE:
            return "", f"expected a line of at most {LONGEST_LINE} bytes"
        try:
            text = line.decode()
        except UnicodeDecodeError:
            return "", "expected a line in UTF-8"
        if self._url_field is None:
            return text, None
        try:
            url = json.loads(text)[self._url_field]
        except (ValueError, KeyError, TypeError, RecursionError):
            url = None
        if not isinstance(url, str):
            return "", f"expected a JSON object with a URL as {self._url_field!r}"
        return url, None

    async def _rejection(
        self, checker: RobotsChecker, line: bytes, url: str, error: str | None
    ) -> str:
        """The text for `line` in the file of rejected lines."""
        verdict = None
        if error is None:
            try:
                verdict = await checker.check(self._agent, url)
            except UnsupportedError as unsupported:
                error = str(unsupported)
        text = line.decode(errors="surrogateescape")
        if self._url_field is None:
            return f"{printable(text)}\t{printable(error or str(verdict))}\n"
        answer = None if verdict is None else verdict.as_dict()
        return json.dumps({"line": text, "error": error, "verdict": answer}) + "\n"


def _why_no_url(url: str, checker: RobotsChecker) -> str | None:
    """Why `url`, which is not allowed, is none; `None` if it is one."""
    try:
        checker.peek("*", url)
    except InvalidURLError as error:
        return str(error)
    return None


@dataclass(slots=True, kw_only=True)
class Counts:
    """How far the command has come.

    Attributes:
        position: how many bytes of stdin are done.
        urls: how many URLs are done.
        without_url: how many other lines are done, without blank ones.
        allowed: how many URLs were printed.
        fetches: how many robots.txt were fetched.
        failures: how many of those fetches failed.
    """

    position: int = 0
    urls: int = 0
    without_url: int = 0
    allowed: int = 0
    fetches: int = 0
    failures: int = 0

    def __str__(self) -> str:
        """One line for people."""
        lines = "line" if self.without_url == 1 else "lines"
        others = f"; {self.without_url:,} {lines} without a URL"
        return (
            f"{self.urls:,} URLs, {self.allowed:,} allowed,"
            f" {self.fetches:,} origins fetched, {self.failures:,} failed"
            f"{others if self.without_url else ''}"
        )


@contextmanager
def progress(counts: Counts, *, is_quiet: bool) -> Iterator[Callable[[], None]]:
    """Show `counts` on stderr: at the end, and before if that is a terminal.

    Not before on the terminal that shows the URLs, too.

    Args:
        counts: what the block counts.
        is_quiet: whether to show nothing.

    Yields:
        A function to call when the counts have changed.
    """
    terminal = console(on_stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),  # all of it fits into 80 columns
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=is_quiet or not terminal.is_terminal or console().is_terminal,
    )
    task = bar.add_task("", total=_bytes_of_stdin())

    def show() -> None:
        rate = counts.urls / (bar.tasks[0].elapsed or 1)
        text = (
            f"{counts.urls:,} URLs, {rate:,.0f}/s,"
            f" {counts.fetches:,} origins, {counts.failures:,} failed"
        )
        bar.update(task, completed=counts.position, description=text)

    bar.start()
    try:
        yield show
    except OSError:  # nobody can or wants to see more
        is_quiet = True
        raise
    finally:
        with suppress(OSError):  # the terminal is gone
            bar.stop()
        if not is_quiet:
            note(str(counts))


def _bytes_of_stdin() -> int | None:
    """How many bytes there are to read; `None` if that is not known, as in a pipe."""
    try:
        status = os.fstat(sys.stdin.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
