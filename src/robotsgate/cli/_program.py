"""The `robotsgate` program: its commands, signal handling and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import click
from click.shell_completion import shell_complete

from robotsgate import RobotsError, __version__
from robotsgate.cli._cache import cache
from robotsgate.cli._check import check
from robotsgate.cli._files import diff, lint, show
from robotsgate.cli._filter import filter_
from robotsgate.cli._serve import serve
from robotsgate.cli._shell import Exit, complain, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from io import TextIOWrapper
    from types import FrameType

    _Handler = Callable[[int, FrameType | None], None]

# Like shells, exit with this plus the signal number.
_SIGNALLED = 128


_STREAMS = (
    ("stdin", "r", os.O_WRONLY),
    ("stdout", "w", os.O_RDONLY),
    ("stderr", "w", os.O_WRONLY),
)


def _open_closed_streams() -> None:
    """Reopen streams that the shell closed (`>&-`), so that no file reuses their fds.

    Reading from a reopened stdin fails, as does writing to a reopened stdout.
    """
    for name, mode, flags in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def _drop_unwritten() -> None:
    """Drop output that cannot be written; Python would otherwise exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _ending_as_ctrl_c(ending: list[int]) -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block like Ctrl-C, so that it cleans up.

    The number of the received signal is appended to `ending`.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        ending.append(number)
        handler = cast("_Handler", signal.getsignal(signal.SIGINT))
        handler(signal.SIGINT, frame)

    # A background job ignores SIGINT, but the event loop only handles a signal that is
    # not ignored. So handle it, but block it, so that Ctrl-C still has no effect.
    is_in_background = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if is_in_background:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Under nohup, SIGHUP is ignored; Windows does not have it.
    numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
    taken = [one for one in numbers if one and signal.getsignal(one) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
        if is_in_background:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        'Completion: eval "$(_ROBOTSGATE_COMPLETE=bash_source robotsgate)";'
        " also zsh_source and fish_source."
    ),
)
@click.version_option(__version__, prog_name="robotsgate")
def program() -> None:
    """Check URLs against robots.txt, and see why each is allowed or disallowed.

    \b
    Examples:
      robotsgate check -a ExampleBot https://example.com/private
      robotsgate lint robots.txt
      robotsgate filter -a ExampleBot urls.txt > allowed.txt
    """  # noqa: D301 (\b stops click from rewrapping)


for command in (check, show, lint, filter_, diff, cache, serve):
    program.add_command(command)


def run(arguments: Sequence[str]) -> int:
    """Run the program with `arguments` and return its exit code.

    Each error is printed to stderr as a single line. If the process reading the output
    closes the pipe, the program exits without a message.
    """
    _open_closed_streams()
    ending: list[int] = []
    try:
        for stream in (sys.stdout, sys.stderr):
            cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
        with _ending_as_ctrl_c(ending):
            code = _invoke(list(arguments))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        # A second Ctrl-C ends the program immediately.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return _SIGNALLED + (ending or [signal.SIGINT])[0]
    except click.exceptions.NoArgsIsHelpError as error:
        note(error.format_message())
    except click.ClickException as error:
        complain(_in_one_line(error))
    except BrokenPipeError:
        return Exit.CLOSED_PIPE
    except (RobotsError, OSError) as error:
        complain(str(error))
    except Exception:  # noqa: BLE001 (Python would exit with 1, i.e. "disallowed")
        note(traceback.format_exc())
    finally:
        _drop_unwritten()
    return Exit.TROUBLE


def _invoke(arguments: list[str]) -> int:
    """Run the command without `click.Group.main`, which exits with 1 on EPIPE."""
    name, variable = "robotsgate", "_ROBOTSGATE_COMPLETE"
    if instruction := os.environ.get(variable):
        return shell_complete(program, {}, name, variable, instruction)
    try:
        with program.make_context(name, arguments) as context:
            return int(program.invoke(context) or 0)
    except click.exceptions.Exit as done:  # after --help, for example
        return done.exit_code


def _in_one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    return f"{message} (see {context.command_path} --help)"
