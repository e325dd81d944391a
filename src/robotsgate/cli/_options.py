"""The options that commands share, and the checkers and files they specify."""

from __future__ import annotations

import functools
import logging
import math
import sys
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import click
import httpx

from robotsgate import (
    AddressGuard,
    Dialect,
    Origin,
    Policy,
    RobotsChecker,
    RobotsTxt,
    __version__,
)
from robotsgate.caching import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from robotsgate import sync
    from robotsgate.events import CheckerEvent


_Result = TypeVar("_Result")

_PRESETS = {
    "default": Policy,
    "google-today": Policy.google_today,
    "google-2021": Policy.google_2021,
    "rfc9309": Policy.rfc9309,
    "strict": Policy.strict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a command fetches, and how much it prints.

    Attributes:
        user_agent: the User-Agent header for fetching robots.txt.
        store: the URL of a store; `None` to cache in memory.
        proxy: the URL of a proxy, or `None`.
        policy: the checker's policy.
        dialect: the dialect for parsing robots.txt.
        is_quiet: whether to print only errors to stderr.
    """

    user_agent: str
    store: str | None
    proxy: str | None
    policy: Policy
    dialect: Dialect
    is_quiet: bool

    @asynccontextmanager
    async def checker(
        self,
        *,
        store: str | None = None,
        max_origins: int = 10_000,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> AsyncIterator[RobotsChecker]:
        """A checker with these settings.

        Args:
            store: the URL of the store to use by default instead of memory.
            max_origins: the maximum number of parsed files to keep in memory, ≥ 1.
            on_event: as in `RobotsChecker`.
        """
        client = self._client()
        async with nullcontext() if client is None else client:
            with _usage_errors():
                checker = RobotsChecker(
                    user_agent=self.user_agent,
                    client=client,
                    store=self.store or store,
                    policy=self.policy,
                    dialect=self.dialect,
                    max_origins=max_origins,
                    on_event=on_event,
                )
            async with checker:
                yield checker

    def blocking_checker(self) -> sync.RobotsChecker:
        """A blocking checker with these settings, which the caller closes."""
        from robotsgate import sync  # noqa: PLC0415 (only `serve` needs it)

        with _usage_errors():
            return sync.RobotsChecker(
                user_agent=self.user_agent,
                client=self._client(),
                store=self.store,
                policy=self.policy,
                dialect=self.dialect,
            )

    def _client(self) -> httpx.AsyncClient | None:
        """The client for the proxy; `None` if there is no proxy."""
        if self.proxy is None:
            return None
        try:
            return httpx.AsyncClient(proxy=self.proxy, trust_env=False)
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise click.BadParameter(str(error), param_hint="--proxy") from error


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from error


_FETCHING = (
    click.option(
        "--user-agent",
        default=f"robotsgate/{__version__}",
        show_default=True,
        metavar="HEADER",
        help="The User-Agent header for fetching robots.txt.",
    ),
    click.option(
        "--store",
        metavar="URL",
        help="Where to cache: sqlite:///FILE or redis://HOST. Default: in memory.",
    ),
    click.option(
        "--proxy",
        metavar="URL",
        help="Fetch through this proxy, which then decides what may be accessed.",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=Policy().fetch_deadline,
        show_default=True,
        metavar="SECONDS",
        help="The time limit for fetching one robots.txt, including redirects.",
    ),
    click.option(
        "--policy",
        type=click.Choice(list(_PRESETS)),
        default="default",
        show_default=True,
        help="How to treat status codes and outages.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Print only errors to stderr."),
    click.option("-v", "--verbose", is_flag=True, help="Log each step to stderr."),
)

dialect_option = click.option(
    "--dialect",
    type=click.Choice([dialect.value for dialect in Dialect]),
    default=Dialect.RFC9309.value,
    show_default=True,
    help="The dialect for parsing robots.txt.",
    callback=lambda _context, _option, value: Dialect(value),
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object per line."
)
agents_option = click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    help="A product token or a whole User-Agent header; may be repeated. "
    "TOKEN,TOKEN is one crawler with two names, the more specific one first. "
    "Default: all agents.",
    callback=lambda _context, _option, value: tuple(map(agent_of, value or "*")),
)


def agent_of(text: str) -> str | tuple[str, ...]:
    """Parse an agent: commas separate names, except in a User-Agent header."""
    is_list = "," in text and not {"/", "("}.intersection(text)
    return tuple(map(str.strip, text.split(","))) if is_list else text


def fetching_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Add the fetching options to `command`, which receives them as `settings`."""

    @functools.wraps(command)
    def with_settings(
        *,
        user_agent: str,
        store: str | None,
        proxy: str | None,
        timeout: float,
        policy: str,
        dialect: Dialect,
        quiet: bool,
        verbose: bool,
        **others: Any,  # noqa: ANN401 (the command's options)
    ) -> _Result:
        _log_to_stderr(is_quiet=quiet, is_verbose=verbose)
        if not math.isfinite(timeout):
            raise click.BadParameter(f"expected a number of seconds, got {timeout!r}")
        chosen = replace(_PRESETS[policy](), fetch_deadline=timeout)
        if proxy is not None:
            chosen = replace(chosen, address_guard=AddressGuard.OFF)
        settings = Settings(
            user_agent=user_agent,
            store=store,
            proxy=proxy,
            policy=chosen,
            dialect=dialect,
            is_quiet=quiet,
        )
        return command(settings=settings, **others)

    with_options = with_settings
    for option in reversed((dialect_option, *_FETCHING)):
        with_options = option(with_options)
    return with_options


class _PrintableFormatter(logging.Formatter):
    """Escapes control characters, since a server may have sent them."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _log_to_stderr(*, is_quiet: bool, is_verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PrintableFormatter("robotsgate: %(levelname)s: %(message)s"))
    logger = logging.getLogger("robotsgate")
    logger.handlers = [handler]
    level = logging.ERROR if is_quiet else logging.WARNING
    logger.setLevel(logging.DEBUG if is_verbose else level)


def is_url(source: str) -> bool:
    """Whether `source` is a URL rather than a file name."""
    return "://" in source


def robots_txt_of(source: str, settings: Settings) -> RobotsTxt:
    """The robots.txt at a URL or in a file.

    Raises:
        ClickException: there is no robots.txt to read.
    """
    if is_url(source):
        return anyio.run(_robots_txt_at, source, settings)
    # Not in an event loop, where Ctrl-C would have no effect until stdin ends.
    return parsed_file(source, settings.dialect)


async def _robots_txt_at(source: str, settings: Settings) -> RobotsTxt:
    async with settings.checker() as checker:
        return await fetched_robots_txt(source, checker)


async def fetched_robots_txt(source: str, checker: RobotsChecker) -> RobotsTxt:
    """The robots.txt at a URL.

    Raises:
        ClickException: there is no robots.txt to read; the message says why.
    """
    robots = await checker.robots_txt(source)
    if robots is not None:
        return robots
    # Check "/", because fetching robots.txt itself is always allowed.
    verdict = await checker.check("*", f"{Origin.from_url(source)}/")
    _, _, reason = str(verdict).partition(": ")
    raise click.ClickException(f"cannot read the robots.txt: {reason}")


def parsed_file(source: str, dialect: Dialect) -> RobotsTxt:
    """The robots.txt in a file, or on stdin if `source` is "-".

    Raises:
        ClickException: the file cannot be read.
    """
    most = Policy().max_body_bytes + 1  # one more byte shows that the file is longer
    try:
        if source == "-":
            body = sys.stdin.buffer.read(most)
        else:
            with Path(source).open("rb") as file:
                body = file.read(most)
    except (OSError, ValueError) as error:
        message = f"cannot read the file: {error}"
        host, _, _ = source.partition("/")
        # A name like robots.txt could also be a host, but is meant as a file.
        is_site = "." in host.strip(".") and not host.endswith(".txt")
        if is_site and isinstance(error, FileNotFoundError):
            message += f"; for a site, write https://{source}"
        raise click.ClickException(message) from error
    return RobotsTxt.parse(body, dialect=dialect)
