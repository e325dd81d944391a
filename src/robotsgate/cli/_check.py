"""`robotsgate check`: whether agents may fetch URLs, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import click

from robotsgate import Reason, SystemClock
from robotsgate.cli._explain import Explanation, explanation, summary
from robotsgate.cli._options import (
    Settings,
    agents_option,
    fetching_options,
    json_option,
)
from robotsgate.cli._shell import (
    LONGEST_LINE,
    Exit,
    LinesOfStdin,
    complain,
    tell,
    tell_json,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from robotsgate import RobotsChecker, Verdict

_UNDECIDED = {
    Reason.UNREACHABLE,
    Reason.UNREACHABLE_TOO_LONG,
    Reason.ADDRESS_REFUSED,
}

# Input lines can be long, so only this many are kept in memory.
_WINDOW = 100

_STYLES = {
    Exit.ALLOWED: "green",
    Exit.DISALLOWED: "red",
    Exit.UNDECIDED: "yellow",
}


@click.command()
@agents_option
@click.option(
    "--explain", "explains", is_flag=True, help="Show the lines behind each verdict."
)
@json_option
@fetching_options
@click.argument("urls", nargs=-1, metavar="[URL]...")
def check(
    *,
    agents: tuple[str | tuple[str, ...], ...],
    explains: bool,
    as_json: bool,
    settings: Settings,
    urls: tuple[str, ...],
) -> Exit:
    """Check whether AGENT may fetch each URL, and show why.

    Without a URL, or with "-", URLs are read from stdin, one per line.

    The exit code is 0 if all URLs are allowed, 1 if some are disallowed, 2 on an error,
    and 3 if some URLs could not be decided because a server is unreachable.

    \b
    Examples:
      robotsgate check https://example.com/
      robotsgate check -a ExampleBot -a Googlebot --explain https://example.com/a
      robotsgate check -a ExampleBot --json < urls.txt
    """  # noqa: D301 (\b stops click from rewrapping)
    question = _Check(agents, settings, explains=explains, as_json=as_json)
    return anyio.run(question.run, urls)


class _Check:
    """One run of the command."""

    def __init__(
        self,
        agents: Sequence[str | tuple[str, ...]],
        settings: Settings,
        *,
        explains: bool,
        as_json: bool,
    ) -> None:
        self._agents = agents
        self._settings = settings
        self._explains = explains
        self._as_json = as_json
        self._codes: set[Exit] = set()

    async def run(self, urls: Sequence[str]) -> Exit:
        """Print a verdict for each URL and agent, in order."""
        async with self._settings.checker() as checker:
            if urls not in {(), ("-",)}:
                await self._check(checker, urls)
            else:
                async for lines in LinesOfStdin():
                    await self._check(checker, self._urls_in(lines))
        return worst(self._codes)

    async def _check(self, checker: RobotsChecker, urls: Iterable[str]) -> None:
        first, *others = self._agents
        results = checker.check_many(first, urls, window=_WINDOW)
        async for url, verdict, error in results:
            if verdict is None:
                self._report_trouble(str(error))
                continue
            await self._print(checker, verdict)
            for agent in others:
                await self._print(checker, await checker.check(agent, url))

    def _urls_in(self, lines: Iterable[bytes]) -> Iterator[str]:
        for line in lines:
            try:
                url = line.decode().strip()
            except UnicodeDecodeError:
                self._report_trouble(f"expected a URL in UTF-8, got {line[:80]!r}")
                continue
            if len(line) > LONGEST_LINE:
                self._report_trouble(
                    f"expected a URL of at most {LONGEST_LINE} bytes,"
                    f" got one that begins with {url[:80]!r}"
                )
            elif url:
                yield url

    def _report_trouble(self, message: str) -> None:
        self._codes.add(Exit.TROUBLE)
        complain(message)

    async def _print(self, checker: RobotsChecker, verdict: Verdict) -> None:
        code = _code(verdict)
        self._codes.add(code)
        why = None
        if self._explains:
            robots = await checker.robots_txt(verdict.url)
            why = explanation(verdict, robots)
        if self._as_json:
            more = {} if why is None else {"explanation": why.as_dict()}
            tell_json(verdict.as_dict() | more)
            return
        agent = verdict.agent
        names = agent if isinstance(agent, str) else ",".join(agent)
        tell(
            ("allowed" if verdict.allowed else "disallowed", _STYLES[code]),
            f" {verdict.url}",
            *((" for ", (names, "bold")) if len(self._agents) > 1 else ()),
            detail=summary(verdict, now=SystemClock().now()),
        )
        if why is not None:
            _tell_explanation(why)


def _code(verdict: Verdict) -> Exit:
    if verdict.reason in _UNDECIDED:
        return Exit.UNDECIDED
    return Exit.ALLOWED if verdict.allowed else Exit.DISALLOWED


def _tell_explanation(why: Explanation) -> None:
    width = len(str(why.lines[-1].number)) if why.lines else 0
    for line in why.lines:
        if line.number == why.deciding_line:
            tell((f"  > {line.number:{width}} | {line.text.expandtabs()}", "bold"))
        else:
            tell((f"    {line.number:{width}} | ", "dim"), line.text.expandtabs())
    for title, entries in (
        ("matching rules, in order of priority", why.competing_rules),
        ("redirects", why.redirects),
        ("what would change the answer", why.changes),
    ):
        if entries:
            tell((f"    {title}:", "dim"))
        for entry in entries:
            tell(f"      {entry}")
