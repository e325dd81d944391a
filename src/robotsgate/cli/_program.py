"""The program: its commands, and how it ends."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import TYPE_CHECKING, cast

import click

from robotsgate import RobotsError, __version__
from robotsgate.cli._cache import cache
from robotsgate.cli._check import check
from robotsgate.cli._diff import diff
from robotsgate.cli._filter import filter_
from robotsgate.cli._lint import lint
from robotsgate.cli._serve import serve
from robotsgate.cli._shell import Exit, complain
from robotsgate.cli._show import show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from io import TextIOWrapper


class _Program(click.Group):
    """Ends as programs of a shell do; click itself does not."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command that `ctx` names."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            # What is still buffered would fail once more when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(Exit.CLOSED_PIPE)


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        'Completion: eval "$(_ROBOTSGATE_COMPLETE=bash_source robotsgate)";'
        " zsh_source and fish_source likewise."
    ),
)
@click.version_option(__version__, prog_name="robotsgate")
def program() -> None:
    """May this agent fetch this URL now? Ask robots.txt, and see why.

    \b
    Examples:
      robotsgate check -a ExampleBot https://example.com/private
      robotsgate lint robots.txt
      robotsgate filter -a ExampleBot < urls.txt > allowed.txt
    """  # noqa: D301 (click's mark for a paragraph to keep as it is)


for command in (check, show, lint, filter_, diff, cache, serve):
    program.add_command(command)


def run(arguments: Sequence[str]) -> int:
    """Run the program with `arguments`, and return its exit code.

    Errors are one line on stderr. If nobody reads the output any more, the program ends
    without a message.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            cast("TextIOWrapper", stream).reconfigure(errors="backslashreplace")
        code = program.main(
            list(arguments), prog_name="robotsgate", standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.TROUBLE
    except click.ClickException as error:
        complain(_in_one_line(error))
        return Exit.TROUBLE
    except (RobotsError, OSError) as error:
        complain(str(error))
        return Exit.TROUBLE
    except Exception:  # noqa: BLE001 (Python would exit with 1, which is an answer)
        traceback.print_exc()
        return Exit.TROUBLE
    return Exit(code or 0)


def _in_one_line(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return message
    return f"{message} (see {context.command_path} --help)"
