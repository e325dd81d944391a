"""What the commands share: options, checkers, input, output and exit codes.

Output to a terminal is styled; other output is plain, with one record per line. Control
characters are escaped, since a server may have sent them to corrupt the terminal.
"""

from __future__ import annotations

import enum
import functools
import json
import logging
import sys
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TypeVar, cast

import anyio
import click
import httpx
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from robotsgate import (
    AddressGuard,
    Dialect,
    Policy,
    RobotsChecker,
    __version__,
    open_store,
)
from robotsgate.caching import date_text, printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from io import BufferedReader

_Result = TypeVar("_Result")


class Exit(enum.IntEnum):
    """The exit codes of `robotsgate check`; other commands use some of them.

    `lint`, `diff` and `filter` return DISALLOWED if they have something to report.
    """

    ALLOWED = 0
    DISALLOWED = 1
    TROUBLE = 2  # incorrect usage, or something that cannot be read or opened
    UNDECIDED = 3
    CLOSED_PIPE = 141  # the reader closed the pipe: 128 + SIGPIPE


# --- Output

# Part of a line: text, or a pair (text, style name).
Part = str | tuple[str, str]


def console(*, on_stderr: bool = False) -> Console:
    """A console that does not interpret markup in text."""
    return Console(
        stderr=on_stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def tell(*parts: Part, detail: str = "") -> None:
    """Print one line to stdout, with control characters escaped.

    If the terminal is too narrow, `detail` is printed on a second line.
    """
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    detail = printable(detail)
    terminal = console()
    if terminal.is_terminal:
        text = Text.assemble(*((printable(text), style) for text, style in pairs))
        if detail:
            is_wide = text.cell_len + cell_len(f": {detail}") > terminal.width
            text.append("\n  " if is_wide else ": ").append(detail)
        terminal.print(text)
    else:
        line = "".join(printable(text) for text, _ in pairs)
        _write(f"{line}: {detail}" if detail else line)


def tell_raw(data: bytes) -> None:
    """Print `data` unchanged or, on a terminal, as lines that are escaped."""
    if console().is_terminal:
        for line in data.splitlines():
            tell(line.decode(errors="backslashreplace").expandtabs())
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.flush()


def tell_json(value: object) -> None:
    """Print `value` to stdout as one line of JSON, in ASCII, with dates in ISO 8601."""
    _write(json.dumps(with_dates(value), allow_nan=False))


def with_dates(value: Any, name: str = "") -> Any:  # noqa: ANN401 (JSON types)
    """`value`, called `name`, with ISO 8601 dates in place of epoch seconds."""
    if isinstance(value, dict):
        return {key: with_dates(one, key) for key, one in value.items()}
    is_date = name.endswith(("_at", "_until", "since")) and isinstance(value, float)
    return date_text(value) if is_date else value


def tell_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal, and tab-separated rows otherwise."""
    terminal = console()
    if not terminal.is_terminal:
        for row in rows:
            sys.stdout.write("\t".join(map(printable, row)) + "\n")
        return
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    terminal.print(table, soft_wrap=False)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def complain(message: str) -> None:
    note(f"robotsgate: {printable(message)}")


def counted(count: int, noun: str) -> str:
    """`count` and `noun`, which is singular, in the right number."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def note(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")


# --- Input

_BLOCK_BYTES = 65_536

_LONGEST_LINE = 2**20


async def lines_of(source: BinaryIO) -> AsyncIterator[tuple[list[bytes], int]]:
    """Batches of lines without their endings, and the number of bytes read so far.

    A line that is too long for `text_of` may be truncated, but stays too long.
    """
    reader = cast("BufferedReader", source)
    is_file = False
    rest, position = b"", 0
    while True:
        if not is_file:
            try:
                await anyio.wait_readable(source.fileno())
            except OSError:  # a file is always readable
                is_file = True
        block = reader.read1(_BLOCK_BYTES)
        position += len(block)
        *lines, rest = (rest + block).split(b"\n")
        if not block and rest:
            lines.append(rest)
        if lines:
            yield lines, position
        if not block:
            return
        rest = rest[: _LONGEST_LINE + 1]


def text_of(line: bytes) -> str:
    """Decode a line of input.

    Raises:
        ValueError: the line is too long or not UTF-8.
    """
    if len(line) > _LONGEST_LINE:
        shown = f"one that begins with {line[:80]!r}"
        raise ValueError(
            f"expected a line of at most {_LONGEST_LINE} bytes, got {shown}"
        )
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"expected a line in UTF-8, got {line[:80]!r}") from error


# --- Options

_PRESETS = {
    "default": Policy,
    "google-today": Policy.google_today,
    "google-2021": Policy.google_2021,
    "rfc9309": Policy.rfc9309,
    "strict": Policy.strict,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a command fetches, and how much it prints."""

    user_agent: str
    store: str | None
    proxy: str | None
    policy: Policy
    dialect: Dialect
    is_quiet: bool

    @asynccontextmanager
    async def checker(self, **others: Any) -> AsyncIterator[RobotsChecker]:  # noqa: ANN401 (as in `RobotsChecker`)
        """A checker with these settings and `others`, arguments of `RobotsChecker`.

        Raises:
            StoreError: the store cannot be opened, or its server cannot be reached.
        """
        client = self.client()
        store: object = self.store and open_store(self.store, required=True)
        async with (
            client or nullcontext(),
            store if isinstance(store, AbstractAsyncContextManager) else nullcontext(),
            self.made_by(RobotsChecker, client, store=store, **others) as checker,
        ):
            yield checker

    def made_by(
        self,
        kind: Callable[..., _Result],
        client: httpx.AsyncClient | None,
        **others: Any,  # noqa: ANN401 (as in `RobotsChecker`)
    ) -> _Result:
        """A checker of class `kind` with these settings, which the caller closes."""
        try:
            return kind(
                user_agent=self.user_agent,
                client=client,
                policy=self.policy,
                dialect=self.dialect,
                **others,
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def client(self) -> httpx.AsyncClient | None:
        if self.proxy is None:
            return None
        try:
            return httpx.AsyncClient(proxy=self.proxy, trust_env=False)
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise click.BadParameter(str(error), param_hint="--proxy") from error


def from_variable(name: str) -> dict[str, Any]:
    """The arguments of `click.option` that read it from ROBOTSGATE_`name`, too."""
    return {"envvar": f"ROBOTSGATE_{name}", "show_envvar": True}


quiet_option = click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors to stderr."
)
# For commands that always fetch a file, and only read it: no policy changes what it
# says.
_READING = (
    click.option(
        "--dialect",
        type=click.Choice([dialect.value for dialect in Dialect]),
        default=Dialect.RFC9309.value,
        show_default=True,
        help="The dialect for parsing robots.txt.",
    ),
    click.option(
        "--user-agent",
        default=f"robotsgate/{__version__}",
        show_default=True,
        metavar="HEADER",
        **from_variable("USER_AGENT"),
        help="The User-Agent header for fetching robots.txt.",
    ),
    click.option(
        "--proxy",
        metavar="URL",
        **from_variable("PROXY"),
        help="Fetch through this proxy, which then decides what may be accessed.",
    ),
    click.option(
        "--timeout",
        type=float,
        default=Policy().fetch_deadline,
        show_default=True,
        metavar="SECONDS",
        help="The time limit for fetching one robots.txt, including redirects.",
    ),
    click.option("-v", "--verbose", is_flag=True, help="Log each step to stderr."),
)
_FETCHING = (
    *_READING,
    click.option(
        "--store",
        metavar="URL",
        **from_variable("STORE"),
        help="Where to cache: sqlite:///FILE or redis://HOST. Default: in memory.",
    ),
    click.option(
        "--policy",
        type=click.Choice(list(_PRESETS)),
        default="default",
        show_default=True,
        **from_variable("POLICY"),
        help="How to treat status codes and outages.",
    ),
    quiet_option,
)


def _with_settings(
    options: tuple[Callable[..., Any], ...], command: Callable[..., _Result]
) -> Callable[..., _Result]:
    """Add `options` to `command`, which receives them as `settings`."""

    @functools.wraps(command)
    def with_settings(
        *,
        dialect: str,
        timeout: float,
        verbose: bool,
        user_agent: str,
        proxy: str | None,
        store: str | None = None,
        policy: str = "default",
        quiet: bool = False,
        **others: Any,  # noqa: ANN401 (the command's options)
    ) -> _Result:
        _log_to_stderr(is_quiet=quiet, is_verbose=verbose)
        try:
            chosen = replace(_PRESETS[policy](), fetch_deadline=timeout)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--timeout") from error
        if proxy is not None:
            chosen = replace(chosen, address_guard=AddressGuard.OFF)
        settings = Settings(
            user_agent=user_agent,
            store=store,
            proxy=proxy,
            policy=chosen,
            dialect=Dialect(dialect),
            is_quiet=quiet,
        )
        return command(settings=settings, **others)

    return functools.reduce(
        lambda made, option: option(made), reversed(options), with_settings
    )


fetching_options = functools.partial(_with_settings, _FETCHING)
reading_options = functools.partial(_with_settings, _READING)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, one object per line."
)

# A crawler's name, or several names for one crawler.
Agent = str | tuple[str, ...]


def agent_of(text: str) -> Agent:
    """Parse an agent: commas separate names, except in a User-Agent header."""
    if "\n" in text:
        raise click.BadParameter(f"expected a single agent, got {text!r}")
    is_list = "," in text and not {"/", "("}.intersection(text)
    return tuple(map(str.strip, text.split(","))) if is_list else text


class _AgentType(click.types.FuncParamType):  # type: ignore[type-arg] # click < 8.5
    # Not white space, which a User-Agent header contains.
    envvar_list_splitter: ClassVar[str | None] = "\n"


def agent_text(agent: Agent) -> str:
    return agent if isinstance(agent, str) else ",".join(agent)


def agent_option(name: str, **others: Any) -> Callable[..., Any]:  # noqa: ANN401 (as in `click.option`)
    """The option -a; `others` are arguments of `click.option`."""
    return click.option(
        "-a", "--agent", name, type=_AgentType(agent_of), metavar="AGENT", **others
    )


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
