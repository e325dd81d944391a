"""`robotsgate diff`: shows which URLs two robots.txt files treat differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from robotsgate.cli._options import (
    Settings,
    agent_of,
    fetching_options,
    json_option,
    robots_txt_of,
)
from robotsgate.cli._shell import Exit, tell, tell_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from robotsgate import Match, RobotsTxt

_Agent = str | tuple[str, ...]


@click.command()
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="The crawler; may be repeated. Default: all named in either file, and any"
    " other.",
)
@json_option
@fetching_options
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.argument("urls", nargs=-1, metavar="[URL]...")
def diff(
    *,
    agents: tuple[str, ...],
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
    both = (robots_txt_of(old, settings), robots_txt_of(new, settings))
    asked = tuple(map(agent_of, agents)) or _agents_named_in(both)
    code = Exit.ALLOWED
    for agent, url, was, is_ in _differences(both, asked, urls or _paths_of(both)):
        code = Exit.DISALLOWED
        if as_json:
            names = {"agent": agent, "url": url}
            tell_json(names | {"old": was.as_dict(), "new": is_.as_dict()})
        else:
            _tell(agent, url, was, is_)
    return code


def _differences(
    both: tuple[RobotsTxt, RobotsTxt], agents: Sequence[_Agent], urls: Iterable[str]
) -> Iterator[tuple[_Agent, str, Match, Match]]:
    """The agent, URL, old match and new match wherever the verdict changes."""
    for url in urls:
        for agent in agents:
            was, is_ = (robots.match(agent, url) for robots in both)
            if was.allowed != is_.allowed:
                yield agent, url, was, is_


def _agents_named_in(both: Iterable[RobotsTxt]) -> tuple[str, ...]:
    """The product tokens in either file, followed by "*"."""
    tokens = {
        token
        for robots in both
        for group in robots.groups
        for token in group.tokens
        if token
    }
    return (*sorted(tokens - {"*"}), "*")


def _paths_of(both: Iterable[RobotsTxt]) -> list[str]:
    """Paths that the patterns in either file match or narrowly miss."""
    patterns = {
        rule.pattern
        for robots in both
        for group in robots.groups
        for rule in group.rules
    }
    paths = {"/"}
    for pattern in patterns:
        start = pattern.removesuffix("$")
        for path in (start.replace("*", ""), start.replace("*", "x"), f"{start}x"):
            paths.add("/" + path.replace("*", "").removeprefix("/"))
    return sorted(paths)


def _tell(agent: _Agent, url: str, was: Match, is_: Match) -> None:
    names = agent if isinstance(agent, str) else ",".join(agent)
    tell(
        f"{url} ",
        (names, "bold"),
        ": ",
        *_answer(was),
        " -> ",
        *_answer(is_),
    )


def _answer(match: Match) -> tuple[tuple[str, str], str]:
    word = ("allowed", "green") if match.allowed else ("disallowed", "red")
    rule = match.rule
    return word, "" if rule is None else f" (line {rule.line}: {rule})"
