"""Runs the program, in this process or as installed."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate.cli._program import run
from tests.servers.loopback import LoopbackServer
from tests.systems import need_linux, need_posix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Program = Callable[..., "Result"]
Serve = Callable[..., LoopbackServer]

EXECUTABLE = Path(sys.executable).with_name("robotsgate")

# A failing test must not hang.
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a run of the program."""

    code: int
    stdout: str
    stderr: str

    @property
    def records(self) -> list[Any]:
        """The lines of stdout, parsed as JSON."""
        return [json.loads(line) for line in self.stdout.splitlines()]


@pytest.fixture
def program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """`program(*arguments, stdin=b"")` runs in this process, without a terminal."""

    def run_here(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        streams = capsys.readouterr()
        return Result(code=code, stdout=streams.out, stderr=streams.err)

    yield run_here
    logger = logging.getLogger("robotsgate")
    logger.handlers = []
    logger.setLevel(logging.NOTSET)


def run_in_shell(command: str) -> Result:
    """Run a shell command in which "robotsgate" is the installed program."""
    need_posix()
    line = command.replace("robotsgate", f"{EXECUTABLE}")
    completed = subprocess.run(  # noqa: S603 (our own program)
        ["/bin/sh", "-c", line],
        capture_output=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        text=True,
    )
    return Result(
        code=completed.returncode, stdout=completed.stdout, stderr=completed.stderr
    )


def peak_kib(*arguments: object, stdin: Path, stdout: Path) -> int:
    """The program's peak memory, with files for its streams."""
    need_linux()
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
        completed = subprocess.run(  # noqa: S603 (our own program)
            [sys.executable, "-c", program],
            check=True,
            stdin=source,
            stdout=output,
            stderr=subprocess.PIPE,
            env=variables,
        )
    (peak,) = re.findall(rb"VmHWM:\s+(\d+) kB", completed.stderr)
    return int(peak)


@contextmanager
def running(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[bytes]]:  # noqa: ANN401 (Popen's)
    """Run the installed program, with pipes for its streams."""
    need_posix()
    # A shell's background jobs ignore Ctrl-C, and so would processes they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(  # noqa: S603 (our own program)
        [EXECUTABLE, *map(str, arguments)], **{**pipes, **options}
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()  # otherwise, leaving this block would wait for it
            raise


def run_on_terminal(
    *arguments: object,
    variables: Mapping[str, str] = MappingProxyType({}),
    stdin: Path | None = None,
    on_stderr: bool = False,
) -> bytes:
    """Run the installed program on an 80-column terminal, and return its output."""
    need_posix()
    unset = {"NO_COLOR", "TERM", "FORCE_COLOR"}
    environment = {name: os.environ[name] for name in os.environ.keys() - unset}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "80", **variables}
    parent, terminal = os.openpty()
    with (
        open(stdin or os.devnull, "rb") as source,  # noqa: PTH123 (may be a string)
        subprocess.Popen(  # noqa: S603 (our own program)
            [EXECUTABLE, *map(str, arguments)],
            stdin=source,
            stdout=subprocess.DEVNULL if on_stderr else terminal,
            stderr=terminal,
            env=environment,
        ),
    ):
        os.close(terminal)
        output = b""
        with suppress(OSError):  # the program has ended
            while block := os.read(parent, 65_536):
                output += block
    os.close(parent)
    return output
