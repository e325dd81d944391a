"""`robotsgate filter`: order, reasons, limits and progress."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import peak_kib, run_in_shell, run_on_terminal, running
from tests.servers.answers import Crowd, Raw, Reply
from tests.servers.loopback import Connection, dead_port
from tests.systems import need_posix
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Program, Serve

_BODY = b"User-agent: *\nDisallow: /p\n"


def test_allowed_urls_are_printed_in_input_order(
    program: Program, serve: Serve
) -> None:
    # Neither server responds until both have received a request.
    crowd = Crowd(2, Reply(body=_BODY))
    one, two = serve(crowd), serve(crowd)
    lines = [f"{(one, two)[n % 2].url}/{'p' * (n % 3 == 0)}{n}" for n in range(9_000)]

    result = program("filter", "-a", "a", stdin="\n".join(lines).encode())

    assert result.code == 0
    assert result.stdout.splitlines() == [line for line in lines if "/p" not in line]
    assert result.stderr == "9,000 URLs, 6,000 allowed, 2 origins fetched, 0 failed\n"


@pytest.mark.parametrize("name", ["urls.txt", "-"])
def test_urls_are_read_from_a_file_or_stdin(
    program: Program, serve: Serve, tmp_path: Path, name: str
) -> None:
    lines = f"{serve(Reply(body=_BODY)).url}/x\n"
    file = tmp_path / "urls.txt"
    file.write_text(lines)

    source = "-" if name == "-" else file
    stdin = lines.encode() if name == "-" else b""
    result = program("filter", "-q", "-a", "a", source, stdin=stdin)

    assert (result.code, result.stdout) == (0, lines)


def test_lines_stay_in_order_if_their_origins_do_not_fit_in_memory(
    program: Program, serve: Serve, tmp_path: Path
) -> None:
    servers = [serve(Reply(body=_BODY)) for _ in range(3)]
    lines = [f"{servers[n % 3].url}/{'xp'[n % 2]}{n:0500}" for n in range(2_000)]
    rejected = tmp_path / "rejected"

    stdin = "\n".join(lines).encode()
    result = program(
        *("filter", "-a", "a", "--max-origins", "1", "--rejected", rejected),
        stdin=stdin,
    )

    assert result.stdout.splitlines() == lines[::2]
    rows = [row.split("\t")[0] for row in rejected.read_text().splitlines()]
    assert rows == lines[1::2]
    assert result.stderr == "2,000 URLs, 1,000 allowed, 3 origins fetched, 0 failed\n"


def test_rejected_lines_have_their_reasons(
    program: Program, serve: Serve, tmp_path: Path
) -> None:
    url, dead = serve(Reply(body=_BODY)).url, f"http://127.0.0.1:{dead_port()}"
    rejected = tmp_path / "rejected"
    stdin = f" {url}/x\r\n\n\t\nfoo\x9b\n{url}/p\n{dead}/\n".encode()
    stdin += b"\xff\n" + b"x" * 2_000_000

    result = program("filter", "-q", "-a", "a", "--rejected", rejected, stdin=stdin)

    assert (result.code, result.stdout, result.stderr) == (1, f"{url}/x\n", "")
    rows = [row.split("\t") for row in rejected.read_text().splitlines()]
    assert [(line[:99], reason.split(" ")[:2]) for line, reason in rows] == [
        (r"foo\x9b", ["expected", "an"]),
        (f"{url}/p", ["disallowed", "by"]),
        (f"{dead}/", ["disallowed:", f"{dead}/robots.txt"]),
        (r"\udcff", ["expected", "a"]),
        ("x" * 99, ["expected", "a"]),
    ]


def test_url_that_cannot_be_fetched_is_rejected_without_a_fetch(
    program: Program, serve: Serve, tmp_path: Path
) -> None:
    server, rejected = serve(Reply(body=_BODY)), tmp_path / "rejected"

    result = program(
        *("filter", "-a", "a", "--proxy", server.url, "--rejected", rejected),
        stdin=f"ftp://h/\n{server.url}/".encode() + b"\xff\n",
    )

    assert (result.code, result.stdout, server.targets) == (1, "", [])
    assert rejected.read_text().startswith("ftp://h/\tonly a checker without a client")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_line_with_a_control_character_inside_its_url_has_no_url(
    program: Program, serve: Serve, options: list[str]
) -> None:
    """For many readers of the output, the second URL was on a line of its own."""
    url = serve(Reply(body=_BODY)).url
    lines = [f"{url}/x{one}{url}/p" for one in "\r\v\f\0\t\x1e\x85\u2028"]
    lines.append(f"{url}/x\r")
    if options:
        lines = [json.dumps({"url": line}) for line in lines]

    result = program("filter", "-a", "a", *options, stdin="\n".join(lines).encode())

    assert (result.code, result.stdout) == (1, lines[-1].rstrip() + "\n")
    assert result.stderr.endswith("; 8 lines without a URL\n")


def test_json_object_that_spans_lines_for_some_readers_is_refused(
    program: Program, serve: Serve
) -> None:
    url = serve(Reply(body=_BODY)).url
    inner = json.dumps({"url": f"{url}/p"})
    stdin = f'{{"url": "{url}/x", "more":\r{inner}\r}}\r\n'.encode()

    result = program("filter", "-q", "-a", "a", "--json", stdin=stdin)

    assert (result.code, result.stdout) == (1, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_lines_without_a_url_are_counted_and_cause_exit_code_1(
    program: Program, options: list[str]
) -> None:
    result = program("filter", "-a", "a", *options, stdin=b"foo\n\nmailto:me\n")

    assert (result.code, result.stdout) == (1, "")
    assert result.stderr == (
        "0 URLs, 0 allowed, 0 origins fetched, 0 failed; 2 lines without a URL\n"
    )


def test_urls_are_printed_byte_for_byte(serve: Serve) -> None:
    """In a locale other than UTF-8, it used to print /\\u65e5\\u672c."""
    line = f"{serve(Reply(body=_BODY)).url}/日本"

    result = run_in_shell(
        f"echo {line} | PYTHONIOENCODING=ascii robotsgate filter -q -a a"
    )

    assert (result.code, result.stdout) == (0, f"{line}\n")


def test_json_objects_are_passed_through_unchanged(
    program: Program, serve: Serve, tmp_path: Path
) -> None:
    url = serve(Reply(body=_BODY)).url
    good = f'{{ "a":1, "link": "{url}/x"}}'
    bad = ["1", "{", "[" * 99_999, "{}", '{"link": 1}', '{"link": "x"}', "é"]
    disallowed = json.dumps({"link": f"{url}/p"})
    stdin = "\n".join([good, *bad, disallowed]).encode()
    rejected = tmp_path / "rejected"

    result = program(
        *("filter", "-a", "a", "--json", "--field", "link"),
        *("--rejected", rejected),
        stdin=stdin,
    )

    assert result.stdout == f"{good}\n"
    rows = [json.loads(row) for row in rejected.read_text().splitlines()]
    assert [row["line"] for row in rows] == [*bad, disallowed]
    assert [row["verdict"] is None for row in rows] == [True] * len(bad) + [False]
    assert rows[-1]["verdict"]["rule"]["line"] == 2
    assert "expected an absolute URL" in rows[5]["error"]


@pytest.mark.parametrize(("dialect", "code"), [("rfc9309", 2), ("google", 0)])
def test_name_is_checked_in_the_dialect_before_input_is_read(
    program: Program, dialect: str, code: int
) -> None:
    """In any dialect, filter used to refuse what RFC 9309 does not allow."""
    assert program("filter", "-a", "Mozilla/5.0", "--dialect", dialect).code == code


def test_variable_with_two_agents_is_refused(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTSGATE_AGENT", "a\nb")

    result = program("filter")

    assert (result.code, "expected a single agent, got" in result.stderr) == (2, True)


def test_ctrl_c_keeps_the_output_so_far(serve: Serve) -> None:
    quick, slow = serve(Reply(body=_BODY)), serve(Raw(b"", Connection.hang))
    with running("filter", "-a", "a") as process:
        process.stdin.write(f"{quick.url}/\n".encode())
        process.stdin.flush()
        first = process.stdout.readline()
        process.stdin.write(f"{slow.url}/\n".encode())
        process.stdin.flush()
        assert slow.has_accepted(1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert first.decode() == f"{quick.url}/\n"
    assert process.returncode == 130
    assert stderr.decode().startswith("1 URL, 1 allowed, ")


def test_closed_pipe_ends_it_silently(serve: Serve, tmp_path: Path) -> None:
    urls, code = tmp_path / "urls", tmp_path / "code"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\n" * 20_000)

    result = run_in_shell(
        f"{{ robotsgate filter -a a < {urls}; echo $? > {code}; }} | head -n 1"
    )

    assert (result.stdout, result.stderr) == (
        urls.read_text().partition("\n")[0] + "\n",
        "",
    )
    assert code.read_text() == "141\n"


def _end_on_hangup() -> None:
    """Restore the default, in case the tests were started by nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cases("name prepare", {
    "SIGTERM": ("SIGTERM", None),
    "SIGHUP": ("SIGHUP", _end_on_hangup),
    "SIGTERM to a background job": ("SIGTERM", _ignore_ctrl_c),
})  # fmt: skip
def test_terminating_signal_leaves_no_folder_behind(
    serve: Serve,
    tmp_path: Path,
    name: str,
    prepare: Callable[[], None] | None,
) -> None:
    url = serve(Reply(body=_BODY)).url
    variables = os.environ | {"TMPDIR": f"{tmp_path}"}
    with running("filter", "-a", "a", env=variables, preexec_fn=prepare) as process:
        process.stdin.write(f"{url}/\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        had_folder = any(tmp_path.iterdir())
        process.send_signal(signal.Signals[name])
        _, stderr = process.communicate(timeout=30)

    assert had_folder
    assert not any(tmp_path.iterdir())
    assert process.returncode == 128 + signal.Signals[name]
    assert stderr.decode().startswith("1 URL, 1 allowed, ")


def test_memory_does_not_grow_with_the_number_of_lines(
    serve: Serve, tmp_path: Path
) -> None:
    url = serve(Reply(body=_BODY)).url
    urls = tmp_path / "urls"
    urls.write_text(f"{url}/0123456789012345678901234567890123456789\n" * 150_000)
    output = tmp_path / "output"

    peak = peak_kib("filter", "-q", "-a", "a", stdin=urls, stdout=output)

    assert output.stat().st_size == urls.stat().st_size
    assert peak < 80 * 1_024


def test_terminal_output_has_no_raw_escapes_and_no_progress(
    serve: Serve, tmp_path: Path
) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\x9b0;x\u202e\n")

    shown = run_on_terminal("filter", "-a", "a", stdin=urls)

    assert re.match(rb"http://[^ ]+/\\x9b0;x\\u202e\r\n1 URL, 1 allowed, ", shown)


def test_closing_the_terminal_changes_no_answer(serve: Serve) -> None:
    line = f"{serve(Reply(body=_BODY)).url}/\n".encode()
    need_posix()
    parent, terminal = os.openpty()
    with running("filter", "-a", "a", stderr=terminal) as process:
        os.close(terminal)
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        os.close(parent)
        stdout, _ = process.communicate(line, timeout=30)

    assert (process.returncode, stdout) == (0, line)


def test_progress_is_shown_on_a_terminal(serve: Serve, tmp_path: Path) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\n" * 10)

    shown = run_on_terminal("filter", "-a", "a", urls, on_stderr=True)

    assert re.search(rb"10 URLs, [\d,]+/s, 1 origin, 0 failed ", shown)
    assert b"100 %" in shown
    assert b"http" not in shown
