"""`robotsgate show`, `lint` and `diff`: what robots.txt files say."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from robotsgate import Origin, Policy, RobotsTxt, Severity, SystemClock, __version__
from robotsgate.cli._explain import Finding, about_answer, about_file, sarif
from robotsgate.cli._shell import (
    Agent,
    Exit,
    Settings,
    agent_option,
    agent_text,
    complain,
    counted,
    json_option,
    note,
    quiet_option,
    reading_options,
    tell,
    tell_json,
    tell_raw,
    tell_table,
)
from robotsgate.events import CheckerEvent, RobotsTxtFetched
from robotsgate.robotstxt import LineKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from robotsgate import Dialect, Group, Match, UsagePreferences

# The line number, agents, field and value.
_Row = tuple[int, str, str, str]

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}


@click.command()
@agent_option("agent", help="Show only the groups that apply to this agent.")
@click.option("--raw", "is_raw", is_flag=True, help="Print the file unchanged.")
@json_option
@reading_options
@click.argument("source", metavar="URL|FILE|-")
def show(
    *, agent: Agent | None, is_raw: bool, as_json: bool, settings: Settings, source: str
) -> Exit:
    """Show the rules in a robots.txt, group by group.

    Prints a row for each rule and record: line, agents, field and value. A record that
    applies to a whole group is listed with the group's line number. The last rows show
    any usage preferences that the file states for / and AGENT (by default, any agent).

    An argument that contains :// is a URL; anything else is a file. The exit code is 2
    if there is no file to read.

    \b
    Examples:
      robotsgate show https://example.com/
      robotsgate show --agent ExampleBot robots.txt
    """  # noqa: D301 (\b stops click from rewrapping)
    robots = _robots_txt_of(source, settings)
    groups = robots.groups
    if agent is not None:
        token = robots.rules_for(agent).group
        groups = tuple(group for group in groups if token in group.tokens)
    preferences = robots.usage_preferences(agent or "*", "/")
    if is_raw:
        tell_raw("".join(f"{line.text}\n" for line in robots.lines).encode())
    elif as_json:
        shown = {
            "groups": [group.as_dict() for group in groups],
            "usage_preferences": preferences.as_dict(),
        }
        tell_json(robots.as_dict() | shown)
    else:
        rows = sorted(row for group in groups for row in _rows(group))
        if agent is None:
            rows += _rows_outside(robots)
        rows += _rows_of_uses(preferences, agent_text(agent or "*"))
        tell_table(
            ("line", "agents", "field", "value"),
            [(str(line), *cells) for line, *cells in rows],
        )
    return Exit.ALLOWED


def _rows(group: Group) -> Iterator[_Row]:
    agents = ", ".join(token or "(none)" for token in group.tokens)
    if not group.rules:
        yield group.line, agents, "(no rules)", ""
    for rule in group.rules:
        yield rule.line, agents, rule.kind.value, rule.pattern
    if group.crawl_delay is not None:
        yield group.line, agents, "crawl-delay", f"{group.crawl_delay:g}"
    if group.request_rate is not None:
        rate = group.request_rate
        yield group.line, agents, "request-rate", f"{rate.requests}/{rate.seconds:g}"
    for other in group.other_lines:
        yield other.line, agents, other.field, other.value


def _rows_of_uses(preferences: UsagePreferences, agent: str) -> Iterator[_Row]:
    for uses in (preferences.content_usage, preferences.content_signal):
        for category, stated in uses.items():
            if stated.line is not None:
                yield stated.line, agent, f"{category} of /", stated.preference.value


def _rows_outside(robots: RobotsTxt) -> list[_Row]:
    """The rows for records that apply to the whole file."""
    in_groups = {line for group in robots.groups for line in group.other_lines}
    rows = [
        (other.line, "", other.field, other.value)
        for other in robots.other_lines
        if other not in in_groups
    ]
    for line in robots.lines:
        if line.kind is LineKind.SITEMAP:
            alone = RobotsTxt.parse(line.text, dialect=robots.dialect)
            rows += [(line.number, "", "sitemap", url) for url in alone.sitemaps]
    return sorted(rows)


@click.command()
@click.option(
    "--json", "form", flag_value="json", help="Print JSON, one object per line."
)
@click.option("--sarif", "form", flag_value="sarif", help="Print a SARIF log.")
@click.option("--strict", "is_strict", is_flag=True, help="Treat warnings as errors.")
@quiet_option
@reading_options
@click.argument("sources", nargs=-1, required=True, metavar="{URL|FILE|-}...")
def lint(
    *, form: str | None, is_strict: bool, settings: Settings, sources: tuple[str, ...]
) -> Exit:
    """Find lines in robots.txt files that don't do what they seem to do.

    An argument that contains :// is a URL; anything else is a file. URLs are always
    fetched, so you always see the current response.

    The exit code is 1 if there are errors, and 2 if a file is missing.

    \b
    Examples:
      robotsgate lint robots.txt
      robotsgate lint --strict --sarif https://example.com/ > robots.sarif
    """  # noqa: D301 (\b stops click from rewrapping)
    in_files: list[tuple[str, Finding]] = []
    is_complete = True
    for source in sources:
        name, findings, trouble = _findings_of(source, settings)
        in_files += [(name, finding) for finding in findings]
        for finding in findings:
            if form == "json":
                tell_json({"file": name, **finding.as_dict()})
            elif form is None:
                _tell_finding(finding, name)
        if trouble is not None:
            complain(trouble)
            is_complete = False
    if form == "sarif":
        tell_json(sarif(in_files, version=__version__))
    if not is_complete:
        return Exit.TROUBLE
    counts = Counter(finding.severity for _, finding in in_files)
    if not settings.is_quiet:
        note(", ".join(counted(counts[one], one.value) for one in Severity))
    failures = counts[Severity.ERROR] + (counts[Severity.WARNING] if is_strict else 0)
    return Exit.DISALLOWED if failures else Exit.ALLOWED


def _findings_of(
    source: str, settings: Settings
) -> tuple[str, list[Finding], str | None]:
    """A file's name, its findings, and why it could not be read (`None` if it was)."""
    events: list[CheckerEvent] = []
    in_file: list[Finding] = []
    trouble = None
    try:
        in_file = about_file(_robots_txt_of(source, settings, on_event=events.append))
    except _NoFileError as error:
        trouble = error.message
    if not _is_url(source):
        return "<stdin>" if source == "-" else source, in_file, trouble
    origin = Origin.from_url(source)
    findings = [
        finding
        for event in events
        if isinstance(event, RobotsTxtFetched)
        for finding in about_answer(
            origin,
            status=event.status,
            headers=dict(event.headers),
            redirects=event.redirects,
            now=SystemClock().now(),
        )
    ]
    return origin.robots_url, findings + in_file, trouble


def _tell_finding(finding: Finding, name: str) -> None:
    tell(
        (f"{name}:{max(1, finding.line)}:{max(1, finding.column)}: ", "bold"),
        (finding.severity.value, _STYLES[finding.severity]),
        f": {finding.message} ",
        (f"[{finding.code}]", "dim"),
    )


@click.command()
@agent_option(
    "agents",
    multiple=True,
    help="The crawler; may be repeated. Default: all named in either file, and any"
    " other.",
)
@json_option
@reading_options
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.argument("urls", nargs=-1, metavar="[URL]...")
def diff(
    *,
    agents: tuple[Agent, ...],
    as_json: bool,
    settings: Settings,
    old: str,
    new: str,
    urls: tuple[str, ...],
) -> Exit:
    """Show which URLs two robots.txt files treat differently.

    OLD and NEW are URLs, files or -. Each URL can be just a path. Without URLs, diff
    tries paths that the patterns in either file match or narrowly miss.

    As with diff(1), the exit code is 0 if there are no differences, 1 if there are any,
    and 2 on an error.

    \b
    Examples:
      robotsgate diff https://example.com/ robots.txt
      robotsgate diff -a ExampleBot old.txt new.txt /private /public
    """  # noqa: D301 (\b stops click from rewrapping)
    both = [_robots_txt_of(source, settings) for source in (old, new)]
    rows = []
    for url, agent in product(
        urls or _paths_of(both), agents or _agents_named_in(both)
    ):
        was, is_ = (robots.match(agent, url) for robots in both)
        if was.allowed == is_.allowed:
            continue
        rows.append((url, agent_text(agent), _answer(was), _answer(is_)))
        if as_json:
            names = {"agent": agent, "url": url}
            tell_json(names | {"old": was.as_dict(), "new": is_.as_dict()})
    if rows and not as_json:
        tell_table(("url", "agent", "old", "new"), rows)
    return Exit.DISALLOWED if rows else Exit.ALLOWED


def _agents_named_in(both: Sequence[RobotsTxt]) -> tuple[str, ...]:
    """The product tokens in either file, followed by "*"."""
    groups = [group for robots in both for group in robots.groups]
    tokens = {token for group in groups for token in group.tokens if token}
    return (*sorted(tokens - {"*"}), "*")


def _paths_of(both: Sequence[RobotsTxt]) -> list[str]:
    """Paths that the patterns in either file match or narrowly miss."""
    groups = [group for robots in both for group in robots.groups]
    paths = {"/"}
    for pattern in {rule.pattern for group in groups for rule in group.rules}:
        start = pattern.removesuffix("$")
        for path in (start.replace("*", ""), start.replace("*", "x"), f"{start}x"):
            paths.add("/" + path.replace("*", "").removeprefix("/"))
    return sorted(paths)


def _answer(match: Match) -> str:
    word = "allowed" if match.allowed else "disallowed"
    rule = match.rule
    return word if rule is None else f"{word} (line {rule.line}: {rule})"


class _NoFileError(click.ClickException):
    pass


def _is_url(source: str) -> bool:
    return "://" in source


def _robots_txt_of(
    source: str,
    settings: Settings,
    *,
    on_event: Callable[[CheckerEvent], object] | None = None,
) -> RobotsTxt:
    """The robots.txt at a URL, in a file, or on stdin if `source` is "-"."""
    if _is_url(source):
        return anyio.run(_fetched, source, settings, on_event)
    # Not in an event loop, where Ctrl-C would have no effect until stdin ends.
    return _parsed(source, settings.dialect)


async def _fetched(
    source: str, settings: Settings, on_event: Callable[[CheckerEvent], object] | None
) -> RobotsTxt:
    async with settings.checker(on_event=on_event) as checker:
        robots = await checker.robots_txt(source)
        if robots is not None:
            return robots
        # Check "/", because fetching robots.txt itself is always allowed.
        verdict = await checker.check("*", f"{Origin.from_url(source)}/")
    _, _, reason = str(verdict).partition(": ")
    reason = reason.removesuffix(", and there is no usable cached copy")  # no store
    raise _NoFileError(f"cannot read the robots.txt: {reason}")


def _parsed(source: str, dialect: Dialect) -> RobotsTxt:
    most = Policy().max_body_bytes + 1  # one more byte shows that the file is longer
    try:
        if source == "-":
            body = sys.stdin.buffer.read(most)
        else:
            with Path(source).open("rb") as file:
                body = file.read(most)
    except (OSError, ValueError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        hint = "; a site's URL begins with https://" if is_missing else ""
        raise _NoFileError(f"cannot read the file: {error}{hint}") from error
    return RobotsTxt.parse(body, dialect=dialect)
