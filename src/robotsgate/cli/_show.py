"""`robotsgate show`: shows the rules in a robots.txt, group by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from robotsgate import LineKind, RobotsTxt
from robotsgate.cli._options import (
    Settings,
    agent_of,
    fetching_options,
    json_option,
    robots_txt_of,
)
from robotsgate.cli._shell import Exit, tell_json, tell_raw, tell_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate import Group, UsagePreferences

_Row = tuple[int, str, str, str]
"""The line number, agents, field and value."""


@click.command()
@click.option(
    "-a",
    "--agent",
    metavar="AGENT",
    help="Show only the groups that apply to this agent.",
)
@click.option("--raw", "is_raw", is_flag=True, help="Print the file unchanged.")
@json_option
@fetching_options
@click.argument("source", metavar="URL|FILE|-")
def show(
    *, agent: str | None, is_raw: bool, as_json: bool, settings: Settings, source: str
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
    robots = robots_txt_of(source, settings)
    groups = robots.groups
    asking = "*" if agent is None else agent_of(agent)
    preferences = robots.usage_preferences(asking, "/")
    if agent is not None:
        token = robots.rules_for(asking).group
        groups = tuple(group for group in groups if token in group.tokens)
    if is_raw:
        tell_raw(line.text.encode() for line in robots.lines)
    elif as_json:
        tell_json(
            robots.as_dict()
            | {
                "groups": [group.as_dict() for group in groups],
                "usage_preferences": preferences.as_dict(),
            }
        )
    else:
        rows = sorted(row for group in groups for row in _rows(group))
        if agent is None:
            rows += _rows_outside(robots)
        rows += _rows_of_uses(preferences, agent or "*")
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
