"""The program as it is installed: its streams, its signals, its terminal."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

import robotsgate.cli
from robotsgate.__main__ import main
from robotsgate.cli import _program
from tests.cli.conftest import in_shell, installed, on_terminal, running
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer

_BODY = b"User-agent: *\nDisallow: /\x1b]0;[red]x\n"


def test_installed_program_answers_on_stdout(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=_BODY))

    ran = installed("check", f"{server.url}/a", "x")

    assert ran.code == 2
    assert ran.stdout.startswith(f"allowed {server.url}/a: ")
    assert ran.stderr.startswith("robotsgate: expected an absolute URL")


def test_ctrl_c_ends_it_with_what_was_done(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=_BODY))
    slow = serve(Raw(b"", Connection.hang))
    with running("check", f"{server.url}/", f"{slow.url}/") as process:
        first = process.stdout.readline()
        assert slow.has_accepted(1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)

    assert first.decode().startswith(f"allowed {server.url}/: ")
    assert (process.returncode, stdout, stderr) == (130, b"", b"")


def test_ctrl_c_before_a_command_begins_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_program.program, "make_context", interrupt)

    assert _program.run(["check"]) == 130
    assert capsys.readouterr() == ("", "")


def test_ctrl_c_ends_it_while_it_waits_for_stdin() -> None:
    with running("check") as process:
        process.stdin.write(b"x\n")
        process.stdin.flush()
        told = process.stderr.readline()  # it reads
        process.send_signal(signal.SIGINT)
        process.wait(30)

    assert b"got 'x'" in told
    assert process.returncode == 130


@pytest.mark.parametrize("command", ["show", "lint", "diff"])
def test_ctrl_c_ends_it_while_it_reads_a_file_from_stdin(command: str) -> None:
    """An event loop took the first Ctrl-C, and the program went on to read."""
    files = ["-", "-"] if command == "diff" else ["-"]
    with running(command, *files) as process:
        process.stdin.write(b"#" * 100_000)  # more than a pipe holds, so it reads
        process.stdin.flush()
        status = Path(f"/proc/{process.pid}/status")
        while "sleeping" not in status.read_text():
            pass  # until all is read and it waits for more
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()

    assert process.returncode == 130


def test_closed_pipe_ends_it_without_a_word(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=_BODY))
    with running("check") as process:
        process.stdin.write(f"{server.url}/\n".encode())
        process.stdin.flush()
        assert process.stdout.readline() != b""
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.write(f"{server.url}/\n".encode() * 100)
            process.stdin.close()
        stderr = process.stderr.read()

    assert (process.returncode, stderr) == (141, b"")


@cases("arguments variables", {
    "help": (["--help"], {}),
    "help of a command": (["check", "--help"], {}),
    "completion": ([], {"_ROBOTSGATE_COMPLETE": "bash_source"}),
})  # fmt: skip
def test_pipe_without_a_reader_ends_it_without_a_word(
    arguments: list[str], variables: dict[str, str]
) -> None:
    """click exits with 1, which has a meaning."""
    reader, writer = os.pipe()
    os.close(reader)
    with running(*arguments, stdout=writer, env=os.environ | variables) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=30)

    assert (process.returncode, stderr) == (141, b"")


_FULL = "robotsgate: [Errno 28] No space left on device\n"
_CLOSED = "robotsgate: [Errno 9] Bad file descriptor\n"


@cases("command code stderr", {
    "stdout is full": ("show --raw - > /dev/full", 2, _FULL),
    "stdout is full for a filter": ("filter -a a > /dev/full", 2, _FULL),
    "stdout is closed": ("lint - >&-", 2, _CLOSED),
    "stderr is full": ("lint - 2> /dev/full", 1, ""),
    "stderr is closed": ("lint - 2>&-", 1, ""),
    "stderr is full for a complaint": ("check x 2> /dev/full", 2, ""),
    "stderr is full for the summary of a filter":
        ("filter -a a --json 2> /dev/full", 1, ""),
    "stderr is full for the help": ("2> /dev/full", 2, ""),
    "stdin is closed": ("check <&-", 2, _CLOSED),
    "stdin is closed for a file":
        ("lint - <&-", 2, _CLOSED.replace(": ", ": cannot read the file: ", 1)),
})  # fmt: skip
def test_stream_that_fails_changes_no_answer_and_is_no_traceback(
    serve: Callable[..., LoopbackServer], command: str, code: int, stderr: str
) -> None:
    url = serve(Reply(body=_BODY)).url
    stdin = f"printf '{url}/\\nDisalow: /\\n' | "

    ran = in_shell(("" if "<&-" in command else stdin) + f"robotsgate {command}")

    assert (ran.code, ran.stderr) == (code, stderr)


@pytest.mark.parametrize("has_colour", [True, False])
def test_terminal_gets_colour_unless_no_color_is_set(
    serve: Callable[..., LoopbackServer],
    *,
    has_colour: bool,
) -> None:
    server = serve(Reply(body=_BODY))
    shown = on_terminal(
        *("check", "--explain", f"{server.url}/\x1b]0;[red]x"),
        variables={} if has_colour else {"NO_COLOR": "1"},
    )

    assert (b"\x1b[31mdisallowed" in shown) is has_colour
    assert b"\x1b]" not in shown
    assert rb"Disallow: /\x1b]0;[red]x" in shown


@pytest.mark.parametrize("missing", ["click", "rich.console"])
def test_program_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in list(sys.modules):
        if name.startswith("robotsgate.cli"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("robotsgate.cli", robotsgate.cli)  # to be restored
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(SystemExit, match=r"pip install 'robotsgate\[cli\]'"):
        main()


def test_another_missing_module_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "robotsgate.cli._program", None)

    with pytest.raises(ModuleNotFoundError, match=r"robotsgate\.cli"):
        main()


def test_module_runs_as_the_program_does() -> None:
    command = [sys.executable, "-m", "robotsgate", "--version"]

    stdout = subprocess.check_output(command, text=True)  # noqa: S603 (our own program)

    assert stdout.startswith("robotsgate, version ")


@pytest.mark.parametrize(("error", "told"), [
    (OSError(errno.ENOSPC, "No space"), "robotsgate: [Errno 28] No space\n"),
    (TypeError("a fault of ours"), "Traceback"),
])  # fmt: skip
def test_failure_is_never_taken_for_the_answer_no(
    program: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: str,
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(anyio, "run", fail)

    ran = program("check", "http://h/")

    assert (ran.code, ran.stderr.startswith(told)) == (2, True)


def test_program_without_a_command_shows_its_help(
    program: Callable[..., Ran],
) -> None:
    ran = program()

    assert ran.code == 2
    assert "robotsgate lint robots.txt" in ran.stdout + ran.stderr


def test_shell_gets_its_completion() -> None:
    ran = installed(env=os.environ | {"_ROBOTSGATE_COMPLETE": "bash_source"})

    assert ran.code == 0
    assert "_robotsgate_completion" in ran.stdout


def test_table_is_folded_on_a_terminal_and_no_cell_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(f"User-agent: [b]\nDisallow: /\x1b{'x' * 100}y\n")

    variables = {"TERM": "dumb"}

    table = on_terminal("show", file, variables=variables).decode()
    raw = on_terminal("show", "--raw", file, variables=variables).decode()

    assert table.split()[:4] == ["line", "agents", "field", "value"]
    assert r"/\x1b" in table
    assert table.count("x") == 101
    assert max(map(len, table.splitlines())) <= 80
    assert raw == f"User-agent: [b]\r\nDisallow: /\\x1b{'x' * 100}y\r\n"


def test_verdict_is_one_line_on_a_terminal_or_two_if_that_is_too_narrow(
    serve: Callable[..., LoopbackServer],
) -> None:
    url = serve(Reply(body=b"User-agent: *\nDisallow: /p\n")).url

    shown = on_terminal("check", f"{url}/p", f"{url}/p/{'x' * 30}")

    assert shown.decode().replace("\x1b[31m", "").replace("\x1b[0m", "") == (
        f"disallowed {url}/p: line 2 (Disallow: /p); fresh for 23 h\r\n"
        f"disallowed {url}/p/{'x' * 30}\r\n"
        "  line 2 (Disallow: /p); fresh for 23 h\r\n"
    )


def test_unknown_command_is_one_line(program: Callable[..., Ran]) -> None:
    ran = program("chekc")

    assert ran.code == 2
    assert ran.stderr.count("\n") == 1
