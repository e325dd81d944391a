"""`robotsgate filter`: filters a list of URLs down to those an agent may fetch.

`check_many` would be slower, because it creates a verdict for each URL.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, Any

import anyio
import click

from robotsgate import InvalidURLError, Origin, RobotsTxt, UnsupportedError
from robotsgate.caching import printable
from robotsgate.cli._captures import Captures, responses_options
from robotsgate.cli._options import Settings, agent_of, fetching_options
from robotsgate.cli._progress import Counts, progress
from robotsgate.cli._shell import LONGEST_LINE, Exit, LinesOfStdin, tell_raw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from anyio.streams.memory import MemoryObjectReceiveStream

    from robotsgate import RobotsChecker
    from robotsgate.cli._captures import Responses

# A batch is 64 KiB long, and takes ten times as much memory during processing.
_BATCHES_AHEAD = 3

# The first byte of a result. The rest is the line itself, or its text for the
# --rejected file.
_ALLOWED, _DISALLOWED, _WITHOUT_URL, _UNKNOWN = b"+", b"-", b"?", b"~"


@click.command("filter")
@click.option("-a", "--agent", required=True, metavar="AGENT", help="The crawler.")
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
@responses_options
@fetching_options
def filter_(
    *,
    agent: str,
    rejected: IO[bytes] | None,
    is_json: bool,
    url_field: str,
    max_origins: int,
    responses: Responses | None,
    unknown: IO[bytes] | None,
    settings: Settings,
) -> Exit:
    """Print the URLs from stdin that AGENT may fetch.

    The URLs keep their order. With more sites than --max-origins, group the URLs by
    site, because each change of site then takes time. Lines without a URL are counted
    and skipped, and the exit code is then 1. With --store, a later run can reuse the
    fetched files; without it, they are kept in a temporary folder.

    With --responses, archived responses are used instead of fetching. URLs on sites
    without an archived response are neither allowed nor rejected, and the exit code is
    then 3. A damaged file is read up to the damage, and the exit code is then 2. With
    --json, the date of the response is added to each object.

    \b
    Examples:
      robotsgate filter -a ExampleBot < urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --store sqlite:///robots.db \\
        --rejected rejected.txt < urls.txt > allowed.txt
      robotsgate filter -a ExampleBot --json --field link < pages.jsonl
      robotsgate filter -a ExampleBot --responses robots.warc.gz \\
        --as-of 2024-01-31 --unknown unknown.txt < urls.txt > allowed.txt
    """  # noqa: D301 (\b stops click from rewrapping)
    named = agent_of(agent)
    RobotsTxt.parse("").rules_for(named)  # raises if `named` is not a crawler's name
    work = _Filter(
        named,
        rejected=rejected,
        unknown=unknown,
        url_field=url_field if is_json else None,
        max_origins=max_origins,
    )
    if responses is None:
        anyio.run(work.run, settings)
    else:
        with Captures(settings, max_origins=max_origins) as captures:
            captures.read(responses)
            anyio.run(work.run, settings, captures)
            if not captures.are_complete:
                return Exit.TROUBLE
    if work.counts.unknown:
        return Exit.UNDECIDED
    return Exit.DISALLOWED if work.counts.without_url else Exit.ALLOWED


class _Filter:
    """One run of the command.

    Attributes:
        counts: the progress so far.
    """

    def __init__(
        self,
        agent: str | tuple[str, ...],
        *,
        rejected: IO[bytes] | None,
        unknown: IO[bytes] | None,
        url_field: str | None,
        max_origins: int,
    ) -> None:
        """Prepare a run; nothing is read yet.

        Args:
            agent: the crawler.
            rejected: the file for rejected lines, or `None`.
            unknown: the file for lines without an archived response, or `None`.
            url_field: the JSON field that contains the URL; `None` if each line is a
                URL.
            max_origins: the maximum number of origins that a checker keeps in memory.
        """
        self._agent = agent
        self._rejected = rejected
        self._unknown = unknown
        self._url_field = url_field
        self._max_origins = max_origins
        self.counts = Counts()

    async def run(self, settings: Settings, captures: Captures | None = None) -> None:
        """Filter stdin to stdout, using `captures` or, without them, a checker."""
        with progress(self.counts, is_quiet=settings.is_quiet) as show:
            if captures is not None:
                self.counts.unknown = 0
                await self._answer_by(captures, show)
                return
            with TemporaryDirectory(prefix="robotsgate-") as folder:
                async with settings.checker(
                    # Origins that do not fit in memory must not be fetched twice.
                    store=f"sqlite:///{folder}/robots.db",
                    max_origins=self._max_origins,
                ) as checker:

                    def show_fetches() -> None:
                        stats = checker.stats
                        self.counts.fetches = stats.fetches
                        self.counts.failures = stats.unreachable + stats.refused
                        show()

                    await self._answer_by(checker, show_fetches)

    async def _answer_by(
        self, source: RobotsChecker | Captures, show: Callable[[], None]
    ) -> None:
        answers = _Answers(
            source,
            self._agent,
            url_field=self._url_field,
            has_reasons=self._rejected is not None,
        )
        try:
            await self._answer_stdin(answers, show)
        except BaseExceptionGroup as group:
            # Not `except*`: Python 3.11.2 would wrap this `raise` in a group, too.
            raise (group.subgroup(OSError) or group).exceptions[0] from group

    async def _answer_stdin(self, answers: _Answers, show: Callable[[], None]) -> None:
        """Process a few batches at a time and print their results in order."""
        send, receive = anyio.create_memory_object_stream[_Batch](_BATCHES_AHEAD)
        # `receive` is closed last: otherwise, a batch that can no longer be received
        # would cause an additional error.
        async with receive, anyio.create_task_group() as tasks:
            tasks.start_soon(self._print_all, receive, show)
            stdin = LinesOfStdin()
            async with send:
                async for lines in stdin:
                    batch = _Batch(lines, position=stdin.bytes_read)
                    tasks.start_soon(batch.answer_by, answers)
                    await send.send(batch)

    async def _print_all(
        self, batches: MemoryObjectReceiveStream[_Batch], show: Callable[[], None]
    ) -> None:
        async for batch in batches:
            await batch.answered_event.wait()
            self._print(batch.results)
            self.counts.position = batch.position
            show()

    def _print(self, results: list[bytes]) -> None:
        kinds = Counter([result[:1] for result in results])
        self.counts.urls += len(results) - kinds[_WITHOUT_URL]
        self.counts.without_url += kinds[_WITHOUT_URL]
        self.counts.allowed += kinds[_ALLOWED]
        if self.counts.unknown is not None:
            self.counts.unknown += kinds[_UNKNOWN]
        tell_raw([result[1:] for result in results if result[:1] == _ALLOWED])
        for file, kinds_of_file in (
            (self._rejected, (_DISALLOWED, _WITHOUT_URL)),
            (self._unknown, (_UNKNOWN,)),
        ):
            if file is not None:
                others = (one for one in results if one[:1] in kinds_of_file)
                file.writelines(one[1:] + b"\n" for one in others)
                file.flush()  # raises if the disk is full


@dataclass(slots=True)
class _Batch:
    """A batch of lines, the position in stdin where they end, and their results."""

    lines: list[bytes]
    position: int
    results: list[bytes] = field(default_factory=list)
    answered_event: anyio.Event = field(default_factory=anyio.Event)

    async def answer_by(self, answers: _Answers) -> None:
        self.results = await answers.answer(self.lines)
        self.answered_event.set()


class _Answers:
    """Checks lines with a checker or with captures."""

    def __init__(
        self,
        source: RobotsChecker | Captures,
        agent: str | tuple[str, ...],
        *,
        url_field: str | None,
        has_reasons: bool,
    ) -> None:
        """Check lines for `agent` using `source`.

        Args:
            source: the checker or captures.
            agent: the crawler.
            url_field: as in `_Filter`.
            has_reasons: whether the results for rejected lines include the reason.
        """
        self._source = source
        self._agent = agent
        self._url_field = url_field
        self._has_reasons = has_reasons
        self._dated = None
        if isinstance(source, Captures):
            self._dated = None if url_field is None else source.dated
            self._raise_unless_url: Callable[[str], object] = Origin.from_url
        else:
            # Does not have to parse most URLs.
            self._raise_unless_url = partial(source.peek, agent)

    async def answer(self, lines: Iterable[bytes]) -> list[bytes]:
        r"""A result for each non-blank line; no result contains b"\n"."""
        lines = [line for line in map(bytes.strip, lines) if line]
        questions = [self._question(line) for line in lines]
        urls = [url for url, _ in questions]
        answers = await self._source.can_fetch_many(self._agent, urls)
        results = []
        for line, (url, error), answer in zip(lines, questions, answers, strict=True):
            if answer:
                shown = line if self._dated is None else self._dated(line, url)
                results.append(_ALLOWED + shown)
            elif answer is None:
                results.append(_UNKNOWN + line)
            else:
                results.append(await self._rejection(line, url, error))
        return results

    def _question(self, line: bytes) -> tuple[str, str | None]:
        """The URL in `line` and `None`, or "" and the reason why there is no URL."""
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

    async def _rejection(self, line: bytes, url: str, error: str | None) -> bytes:
        """The result for a rejected `line`.

        `error` says why the line has no URL; `None` if it has one.
        """
        kind = _DISALLOWED if error is None else _WITHOUT_URL
        reason = None
        if error is None:
            try:
                if self._has_reasons:
                    reason = await self._reason(url)
                else:
                    self._raise_unless_url(url)
            except InvalidURLError as invalid:
                kind, error = _WITHOUT_URL, str(invalid)
            except UnsupportedError as unsupported:
                error = str(unsupported)
        if not self._has_reasons:
            return kind
        text = line.decode(errors="surrogateescape")
        if self._url_field is None:
            shown = f"{printable(text)}\t{reason or printable(error or '')}"
            return kind + shown.encode(errors="backslashreplace")
        row = json.dumps({"line": text, "error": error, "verdict": reason}).encode()
        if self._dated is not None:
            row = self._dated(row, None if reason is None else url)
        return kind + row

    async def _reason(self, url: str) -> Any:  # noqa: ANN401 (JSON types)
        """The verdict for `url` as text or JSON types."""
        # Never `None`, because only a URL with a response can be rejected.
        verdict: Any = await self._source.check(self._agent, url)
        return printable(str(verdict)) if self._url_field is None else verdict.as_dict()
