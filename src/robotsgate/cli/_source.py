"""Reads the robots.txt that an argument names: a URL, a file or stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from robotsgate import Origin, Policy, RobotsTxt

if TYPE_CHECKING:
    from robotsgate import Dialect
    from robotsgate.cli._options import Settings


def is_url(source: str) -> bool:
    """Whether `source` is a URL and not the name of a file."""
    return "://" in source


def robots_txt_of(source: str, settings: Settings) -> RobotsTxt:
    """The robots.txt in force at a URL, or that of a file.

    Raises:
        ClickException: there is no file to read.
    """
    if is_url(source):
        return anyio.run(_robots_txt_at, source, settings)
    # Not in an event loop, where Ctrl-C would wait for the end of stdin.
    return parsed_file(source, settings.dialect)


async def _robots_txt_at(source: str, settings: Settings) -> RobotsTxt:
    async with settings.checker() as checker:
        robots = await checker.robots_txt(source)
        if robots is not None:
            return robots
        # About "/", because robots.txt itself may always be fetched.
        verdict = await checker.check("*", f"{Origin.from_url(source)}/")
    _, _, reason = str(verdict).partition(": ")
    raise click.ClickException(f"expected a robots.txt, but {reason}")


def parsed_file(source: str, dialect: Dialect) -> RobotsTxt:
    """The robots.txt of a file, or that of stdin for "-".

    Raises:
        ClickException: the file cannot be read.
    """
    most = Policy().max_body_bytes + 1  # one more shows that the file is longer
    try:
        if source == "-":
            body = sys.stdin.buffer.read(most)
        else:
            with Path(source).open("rb") as file:
                body = file.read(most)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"expected a file to read: {error}") from error
    return RobotsTxt.parse(body, dialect=dialect)
