"""The installed program: its streams, signals and terminal."""

from __future__ import annotations

import errno
import json
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
from robotsgate.cli._shell import tell_json
from tests.cli.conftest import run_in_shell, run_on_terminal, running
from tests.servers.answers import Reply
from tests.servers.loopback import dead_port
from tests.systems import need_linux
from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Program, Serve

_BODY = b"User-agent: *\nDisallow: /\x1b]0;[red]x\n"


def test_ctrl_c_before_a_command_starts_shows_no_traceback(
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
        line = process.stderr.readline()  # by now, it is reading
        process.send_signal(signal.SIGINT)
        process.wait(30)

    assert b"got 'x'" in line
    assert process.returncode == 130


@pytest.mark.parametrize("command", ["show", "lint", "diff"])
def test_ctrl_c_ends_it_while_it_reads_a_file_from_stdin(command: str) -> None:
    """An event loop used to swallow the first Ctrl-C, and the program kept reading."""
    need_linux()
    files = ["-", "-"] if command == "diff" else ["-"]
    with running(command, *files) as process:
        # More than fits in a pipe, so the program must be reading.
        process.stdin.write(b"#" * 100_000)
        process.stdin.flush()
        status = Path(f"/proc/{process.pid}/status")
        while "sleeping" not in status.read_text():
            pass  # until all is read and it waits for more
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()

    assert process.returncode == 130


@cases("arguments variables", {
    "help": (["--help"], {}),
    "help of a command": (["check", "--help"], {}),
    "completion": ([], {"_ROBOTSGATE_COMPLETE": "bash_source"}),
})  # fmt: skip
def test_pipe_without_a_reader_ends_it_silently(
    arguments: list[str], variables: dict[str, str]
) -> None:
    """click would exit with 1, which already has a meaning."""
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
    "stderr is full for an error": ("check x 2> /dev/full", 2, ""),
    "stderr is full for the summary of a filter":
        ("filter -a a --json 2> /dev/full", 1, ""),
    "stderr is full for the help": ("2> /dev/full", 2, ""),
    "stdin is closed": ("check <&-", 2, _CLOSED),
    "stdin is closed for a file":
        ("lint - <&-", 2, _CLOSED.replace(": ", ": cannot read the file: ", 1)),
})  # fmt: skip
def test_failing_stream_changes_no_answer_and_shows_no_traceback(
    serve: Serve, command: str, code: int, stderr: str
) -> None:
    url = serve(Reply(body=_BODY)).url
    stdin = f"printf '{url}/\\nDisalow: /\\n' | "

    result = run_in_shell(("" if "<&-" in command else stdin) + f"robotsgate {command}")

    assert (result.code, result.stderr) == (code, stderr)


@pytest.mark.parametrize("has_colour", [True, False])
def test_terminal_gets_colour_unless_no_color_is_set(
    serve: Serve, *, has_colour: bool
) -> None:
    server = serve(Reply(body=_BODY))
    shown = run_on_terminal(
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
    monkeypatch.setattr("robotsgate.cli", robotsgate.cli)  # so that it is restored
    monkeypatch.setitem(sys.modules, missing, None)

    with pytest.raises(SystemExit, match=r"^robotsgate: .* pip install '\.\[cli\]'"):
        main()


def test_other_missing_module_is_reported_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "robotsgate.cli._program", None)

    with pytest.raises(ModuleNotFoundError, match=r"robotsgate\.cli"):
        main()


def test_module_runs_like_the_program() -> None:
    command = [sys.executable, "-m", "robotsgate", "--version"]

    stdout = subprocess.check_output(command, text=True)  # noqa: S603 (our own program)

    assert stdout.startswith("robotsgate, version ")


@pytest.mark.parametrize(("error", "start"), [
    (OSError(errno.ENOSPC, "No space"), "robotsgate: [Errno 28] No space\n"),
    (TypeError("a bug"), "Traceback"),
])  # fmt: skip
def test_failure_never_exits_with_the_code_for_disallowed(
    program: Program, monkeypatch: pytest.MonkeyPatch, error: Exception, start: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(anyio, "run", fail)

    result = program("check", "http://h/")

    assert (result.code, result.stderr.startswith(start)) == (2, True)


@cases("command code words", {
    "no command": ("", 2, "robotsgate lint robots.txt"),
    "an unknown command": ("chekc", 2, "No such command 'chekc'"),
    "the version": ("--version", 0, "robotsgate, version "),
})  # fmt: skip
def test_program_answers_without_a_command(
    program: Program, command: str, *, code: int, words: str
) -> None:
    result = program(*command.split())

    assert (result.code, words in result.stdout + result.stderr) == (code, True)


@pytest.mark.parametrize(("command", "unused"), [
    ("show", "--store --policy --quiet"),
    ("diff", "--store --policy --quiet"),
    ("lint", "--store --policy"),
])  # fmt: skip
def test_help_omits_options_that_the_command_does_not_use(
    program: Program, command: str, unused: str
) -> None:
    shown = program(command, "--help").stdout

    assert "--user-agent" in shown
    assert [option for option in unused.split() if option in shown] == []


def test_options_can_be_given_as_variables(
    program: Program,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    server = serve(Reply(status=403))
    header = "ExampleBot/1.0 (+https://example.com/bot)"
    for name, value in {
        "AGENT": f"{header}\nx,y",
        "PROXY": server.url,
        "POLICY": "strict",
        "STORE": f"sqlite:///{tmp_path}/robots.db",
        "USER_AGENT": header,
    }.items():
        monkeypatch.setenv(f"ROBOTSGATE_{name}", value)

    result = program("check", "--json", "http://site.example/")
    (entry,) = program("cache", "ls", "--json").records

    assert [one["agent"] for one in result.records] == [header, ["x", "y"]]
    assert (result.code, result.records[0]["reason"]) == (1, "restricted")
    assert result.stderr == ""  # a proxy needs no warning about the guard
    assert server.requests[0].headers["user-agent"] == header
    assert server.targets == ["http://site.example/robots.txt"]
    assert entry["origin"] == "http://site.example"


@cases("record shown", {
    "a date": ({"fetched_at": 86_400.5}, {"fetched_at": "1970-01-02T00:00:00Z"}),
    "a date in an object": (
        {"outage": {"evidence_since": 0.0, "attempts": 1}},
        {"outage": {"evidence_since": "1970-01-01T00:00:00Z", "attempts": 1}},
    ),
    "no date": ({"fresh_until": None}, {"fresh_until": None}),
    "a duration": ({"crawl_delay": 5.0}, {"crawl_delay": 5.0}),
})  # fmt: skip
def test_json_has_dates_in_iso_8601(
    capsys: pytest.CaptureFixture[str],
    record: dict[str, object],
    shown: dict[str, object],
) -> None:
    tell_json(record)

    assert json.loads(capsys.readouterr().out) == shown


def test_shell_completion_is_printed() -> None:
    result = run_in_shell("_ROBOTSGATE_COMPLETE=bash_source robotsgate")

    assert result.code == 0
    assert "_robotsgate_completion" in result.stdout


def test_table_is_wrapped_on_a_terminal_without_truncating_cells(
    tmp_path: Path,
) -> None:
    file = tmp_path / "robots.txt"
    file.write_text(f"User-agent: [b]\nDisallow: /\x1b{'x' * 100}y\n")

    variables = {"TERM": "dumb"}

    table = run_on_terminal("show", file, variables=variables).decode()
    raw = run_on_terminal("show", "--raw", file, variables=variables).decode()

    assert table.split()[:4] == ["line", "agents", "field", "value"]
    assert r"/\x1b" in table
    assert table.count("x") == 101
    assert max(map(len, table.splitlines())) <= 80
    assert raw == f"User-agent: [b]\r\nDisallow: /\\x1b{'x' * 100}y\r\n"


def test_verdict_is_one_line_on_a_terminal_or_two_if_too_long(serve: Serve) -> None:
    url = serve(Reply(body=b"User-agent: *\nDisallow: /p\n")).url

    urls = [f"{url}/p", f"{url}/p/{'x' * 30}"]
    shown = run_on_terminal("check", *urls, variables={"COLUMNS": "100"})

    assert shown.decode().replace("\x1b[31m", "").replace("\x1b[0m", "") == (
        f"disallowed {url}/p: line 2 (Disallow: /p, for all agents); fresh for 24 h\r\n"
        f"disallowed {url}/p/{'x' * 30}\r\n"
        "  line 2 (Disallow: /p, for all agents); fresh for 24 h\r\n"
    )


_FILTER = ["filter", "-q", "-a", "a"]
_WARC = [*_FILTER, "--responses", "x"]


@cases("arguments stdin words", {
    "a URL without an origin": (["check", "x"], b"", "expected an absolute URL"),
    "a line without an origin": (["check", "-"], b"x\n", "expected an absolute URL"),
    "a line that is not UTF-8":
        (["check"], b"http://h/\xff\n", "expected a line in UTF-8"),
    "an overlong line":
        (["check"], b"x" * 3_000_000 + b"\n\n", "at most 1048576 bytes"),
    "an unknown store":
        (["check", "--store", "x", "http://h/"], b"", "expected memory:"),
    "a store that cannot be opened":
        (["check", "--store", "sqlite:////nowhere/x", "http://h/"], b"",
         "an existing folder"),
    "a store that cannot be reached":
        (["check", "--store", f"redis://127.0.0.1:{dead_port()}", "http://h/"], b"",
         "Redis"),
    "an unknown proxy":
        (["check", "--proxy", "x", "http://h/"], b"", "Unknown scheme"),
    "an agent that names no crawler":
        (["check", "-a", "Mozilla/5.0", "http://h/"], b"", "expected"),
    "an unknown option": (["check", "--nope"], b"", "(see robotsgate check --help)"),
    "an infinite timeout":
        (["check", "--timeout", "inf"], b"", "finite number above 0"),
    "a header that cannot be sent":
        (["check", "--user-agent", "\n", "http://h/"], b"", "expected user_agent"),
    "a filter without an agent": (["filter"], b"x\n", "--agent"),
    "a filter for a browser": (["filter", "-a", "Mozilla/5.0"], b"x\n", "a browser's"),
    "a file in no folder":
        ([*_FILTER, "--rejected", "/nowhere/x"], b"x\n", "No such file"),
    "a full disk": ([*_FILTER, "--rejected", "/dev/full"], b"x\n", "space"),
    "a missing capture":
        ([*_FILTER, "--responses", "nowhere.gz"], b"", "nowhere.gz: [Errno 2]"),
    "a folder as a capture": ([*_FILTER, "--responses", "/"], b"", "Is a directory"),
    "a file other than WARC": (
        [*_FILTER, f"--responses={__file__}"], b"",
        f"{__file__}: expected an intact WARC record"
    ),
    "an invalid date": ([*_WARC, "--as-of", "2024-13-01"], b"", "got '2024-13-01'"),
    "a full disk for what is unknown": (
        [*_FILTER, "--responses=/dev/null", "--unknown", "/dev/full"],
        b"https://a.example/\n", "space"
    ),
    "a store and captures": ([*_WARC, "--store", "memory:"], b"", "no --store"),
    "a User-Agent and captures":
        ([*_WARC, "--user-agent", "x"], b"", "no --user-agent"),
    "a proxy and captures": ([*_WARC, "--proxy", "x"], b"", "no --proxy"),
    "a timeout and captures": ([*_WARC, "--timeout", "1"], b"", "no --timeout"),
    "a date without captures":
        ([*_FILTER, "--as-of", "2024-01-31"], b"", "--responses with --as-of"),
    "--unknown without captures":
        ([*_FILTER, "--unknown", "/dev/null"], b"", "with --unknown"),
    "a missing file of URLs": ([*_FILTER, "/nowhere/x"], b"", "'/nowhere/x': No such"),
    "a second file of URLs": ([*_FILTER, "-", "x"], b"", "unexpected extra argument"),
})  # fmt: skip
def test_error_is_one_line_on_stderr(
    program: Program, arguments: list[str], stdin: bytes, words: str
) -> None:
    result = program(*arguments, stdin=stdin)

    assert (result.code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("robotsgate: ")
    assert words in result.stderr


def test_port_in_use_is_an_error(program: Program, serve: Serve) -> None:
    result = program("serve", "--port", serve(Reply()).port)

    assert (result.code, result.stderr.count("\n")) == (2, 1)
