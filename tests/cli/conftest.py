"""Runs the program, in this process or as it is installed."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate.cli._program import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

EXECUTABLE = Path(sys.executable).with_name("robotsgate")

# A test that goes wrong must not hang.
_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came out of a run of the program."""

    code: int
    stdout: str
    stderr: str

    @property
    def records(self) -> list[Any]:
        """The lines of stdout, each of which is JSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]


@pytest.fixture
def program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Ran]]:
    """`program(*arguments, stdin=b"")` runs in this process, outside of a terminal."""

    def run_here(*arguments: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        streams = capsys.readouterr()
        return Ran(code=code, stdout=streams.out, stderr=streams.err)

    yield run_here
    logger = logging.getLogger("robotsgate")
    logger.handlers = []
    logger.setLevel(logging.NOTSET)


def installed(*arguments: object, stdin: bytes = b"", **options: Any) -> Ran:  # noqa: ANN401 (those of subprocess)
    """The program as users run it, in a process of its own."""
    done = subprocess.run(  # noqa: S603 (our own program)
        [EXECUTABLE, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
        **options,
    )
    return Ran(
        code=done.returncode,
        stdout=done.stdout.decode(),
        stderr=done.stderr.decode(),
    )


def in_shell(command: str) -> Ran:
    """What a command line with "robotsgate" in it does, in a shell."""
    line = command.replace("robotsgate", f"{EXECUTABLE}")
    done = subprocess.run(  # noqa: S603 (our own program)
        ["/bin/sh", "-c", line],
        capture_output=True,
        timeout=_SECONDS,
        check=False,
        text=True,
    )
    return Ran(code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def peak_kib(*arguments: object, stdin: Path, stdout: Path) -> int:
    """The most memory that the program takes, with files for its streams."""
    program = (
        f"from robotsgate.cli._program import run; run({[*map(str, arguments)]});"
        "import sys; sys.stderr.write(open('/proc/self/status').read())"
    )
    variables = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE")
    }
    with stdin.open("rb") as source, stdout.open("wb") as output:
        done = subprocess.run(  # noqa: S603 (our own program)
            [sys.executable, "-c", program],
            check=True,
            stdin=source,
            stdout=output,
            stderr=subprocess.PIPE,
            env=variables,
        )
    (peak,) = re.findall(rb"VmHWM:\s+(\d+) kB", done.stderr)
    return int(peak)


@contextmanager
def running(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:  # noqa: ANN401 (those of Popen)
    """The installed program while it runs, with pipes for its streams."""
    # Background jobs of a shell ignore Ctrl-C, and so would what they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(  # noqa: S603 (our own program)
        [EXECUTABLE, *map(str, arguments)], **{**pipes, **options}
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()  # else the end of this block would wait for it
            raise


def on_terminal(
    *arguments: object,
    variables: Mapping[str, str] = MappingProxyType({}),
    stdin: Path | None = None,
    on_stderr: bool = False,
) -> bytes:
    """What a terminal of 80 columns gets from the installed program."""
    unset = {"NO_COLOR", "TERM", "FORCE_COLOR"}
    environment = {name: os.environ[name] for name in os.environ.keys() - unset}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", **variables}
    parent, terminal = pty.openpty()
    with (
        open(stdin or os.devnull, "rb") as source,  # noqa: PTH123 (may be no path)
        subprocess.Popen(  # noqa: S603 (our own program)
            [EXECUTABLE, *map(str, arguments)],
            stdin=source,
            stdout=subprocess.DEVNULL if on_stderr else terminal,
            stderr=terminal,
            env=environment,
        ),
    ):
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # the program has ended
            while block := os.read(parent, 65_536):
                shown += block
    os.close(parent)
    return shown
