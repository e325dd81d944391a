"""`robotsgate check`: whether agents may fetch URLs, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio
import click

from robotsgate import Reason, SystemClock
from robotsgate.cli._explain import Explanation, explanation, summary
from robotsgate.cli._shell import (
    Agent,
    Exit,
    Settings,
    agent_option,
    agent_text,
    complain,
    fetching_options,
    from_variable,
    json_option,
    lines_of,
    tell,
    tell_json,
    text_of,
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
@agent_option(
    "agents",
    multiple=True,
    default=["*"],
    help="A product token or a whole User-Agent header; may be repeated. "
    "TOKEN,TOKEN is one crawler with two names, the more specific one first. "
    "Default: all agents.",
    **from_variable("AGENT"),
)
@click.option(
    "--explain", "explains", is_flag=True, help="Show the lines behind each verdict."
)
@json_option
@fetching_options
@click.argument("urls", nargs=-1, metavar="[URL]...")
def check(
    *,
    agents: tuple[Agent, ...],
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
    run = _Check(agents, explains=explains, as_json=as_json)
    anyio.run(run.print_verdicts, urls, settings)
    worst_first = (Exit.TROUBLE, Exit.UNDECIDED, Exit.DISALLOWED)
    return next((code for code in worst_first if code in run.codes), Exit.ALLOWED)


class _Check:
    """One run of the command, and the exit codes for what it has printed."""

    def __init__(
        self, agents: Sequence[Agent], *, explains: bool, as_json: bool
    ) -> None:
        self._agents = agents
        self._explains = explains
        self._as_json = as_json
        self.codes: set[Exit] = set()

    async def print_verdicts(self, urls: Sequence[str], settings: Settings) -> None:
        """Print a verdict for each URL and agent, in order."""
        async with settings.checker() as checker:
            if urls not in {(), ("-",)}:
                await self._check(checker, urls)
                return
            async for lines, _ in lines_of(sys.stdin.buffer):
                await self._check(checker, self._urls_in(lines))

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
                url = text_of(line).strip()
            except ValueError as error:
                self._report_trouble(str(error))
                continue
            if url:
                yield url

    def _report_trouble(self, message: str) -> None:
        self.codes.add(Exit.TROUBLE)
        complain(message)

    async def _print(self, checker: RobotsChecker, verdict: Verdict) -> None:
        code = _code(verdict)
        self.codes.add(code)
        why = None
        if self._explains:
            robots = await checker.robots_txt(verdict.url)
            why = explanation(verdict, robots)
        if self._as_json:
            more = {} if why is None else {"explanation": why.as_dict()}
            tell_json(verdict.as_dict() | more)
            return
        name = (agent_text(verdict.agent), "bold")
        tell(
            ("allowed" if verdict.allowed else "disallowed", _STYLES[code]),
            f" {verdict.url}",
            *((" for ", name) if len(self._agents) > 1 else ()),
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
