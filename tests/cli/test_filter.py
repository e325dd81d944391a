"""`robotsgate filter`: order, reasons, bounds and progress."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import (
    in_shell,
    installed,
    on_terminal,
    peak_kib,
    running,
)
from tests.servers.answers import Crowd, Raw, Reply
from tests.servers.loopback import Connection, dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer

_BODY = b"User-agent: *\nDisallow: /p\n"


def test_allowed_urls_are_printed_in_their_order(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    # Neither answers before the other is asked.
    crowd = Crowd(2, Reply(body=_BODY))
    one, two = serve(crowd), serve(crowd)
    lines = [f"{(one, two)[n % 2].url}/{'p' * (n % 3 == 0)}{n}" for n in range(9_000)]

    ran = program("filter", "-a", "a", stdin="\n".join(lines).encode())

    assert ran.code == 0
    assert ran.stdout.splitlines() == [line for line in lines if "/p" not in line]
    assert ran.stderr == "9,000 URLs, 6,000 allowed, 2 origins fetched, 0 failed\n"


def test_lines_keep_their_order_if_memory_is_too_small_for_their_origins(
    program: Callable[..., Ran],
    serve: Callable[..., LoopbackServer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr("robotsgate.cli._filter._MOST_ORIGINS", 1)
    monkeypatch.setattr("robotsgate.cli._line_filter._LINES_FOR_A_LOOK", 1)
    monkeypatch.setattr("robotsgate.cli._line_filter._MOST_LINES_FOR_A_RELOAD", 10_000)
    servers = [serve(Reply(body=_BODY)) for _ in range(3)]
    lines = [f"{servers[n % 3].url}/{'xp'[n % 2]}{n:0500}" for n in range(2_000)]
    rejected = tmp_path / "rejected"

    stdin = "\n".join(lines).encode()
    ran = program("filter", "-a", "a", "--rejected", rejected, stdin=stdin)

    assert ran.stdout.splitlines() == lines[::2]
    rows = [row.split("\t")[0] for row in rejected.read_text().splitlines()]
    assert rows == lines[1::2]
    assert ran.stderr == "2,000 URLs, 1,000 allowed, 3 origins fetched, 0 failed\n"


def test_rejected_lines_have_their_reasons(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    url, dead = serve(Reply(body=_BODY)).url, f"http://127.0.0.1:{dead_port()}"
    rejected = tmp_path / "rejected"
    stdin = f" {url}/x\r\n\n\t\nfoo\x1b\n{url}/p\n{dead}/\n".encode()
    stdin += b"\xff\n" + b"x" * 2_000_000

    ran = program("filter", "-q", "-a", "a", "--rejected", rejected, stdin=stdin)

    assert (ran.code, ran.stdout, ran.stderr) == (1, f"{url}/x\n", "")
    rows = [row.split("\t") for row in rejected.read_text().splitlines()]
    assert [(line[:99], reason.split(" ")[:2]) for line, reason in rows] == [
        (r"foo\x1b", ["expected", "an"]),
        (f"{url}/p", ["disallowed", "by"]),
        (f"{dead}/", ["disallowed:", f"{dead}/robots.txt"]),
        (r"\udcff", ["expected", "a"]),
        ("x" * 99, ["expected", "a"]),
    ]


@pytest.mark.parametrize("most", [1, 30_000])
@pytest.mark.parametrize("is_json", [False, True], ids=["text", "json"])
def test_rejected_lines_of_one_rule_have_the_same_reason(
    program: Callable[..., Ran],
    serve: Callable[..., LoopbackServer],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    most: int,
    *,
    is_json: bool,
) -> None:
    monkeypatch.setattr("robotsgate.cli._filter._MOST_REASONS", most)
    servers = [serve(Reply(body=_BODY + b"Disallow: /q\n")) for _ in range(2)]
    urls = [f"{servers[n % 2].url}/{'pqr'[n % 3]}{n}" for n in range(18)]
    refused = [url for url in urls if "/r" not in url]
    rejected = tmp_path / "rejected"
    options = ["--json"] if is_json else []
    lines = [json.dumps({"url": url}) if is_json else url for url in urls]

    stdin = "\n".join(lines).encode()
    program("filter", "-a", "a", *options, "--rejected", rejected, stdin=stdin)
    checked = program("check", "-a", "a", "--json", *refused)

    rows = rejected.read_text().splitlines()
    verdicts = list(map(json.loads, checked.stdout.splitlines()))
    if is_json:
        shown = [json.loads(row)["verdict"] for row in rows]
        names = ("url", "origin", "rule", "group", "reason")
        assert [[one[name] for name in names] for one in shown] == [
            [one[name] for name in names] for one in verdicts
        ]
    else:
        for row, url, one in zip(rows, refused, verdicts, strict=True):
            assert row.startswith(f"{url}\t")
            assert f"Disallow: {one['rule']['pattern']}" in row
            assert f"{one['origin']}/robots.txt" in row


def test_url_that_cannot_be_fetched_is_rejected_with_its_reason(
    program: Callable[..., Ran], tmp_path: Path
) -> None:
    rejected = tmp_path / "rejected"
    through_a_proxy = ("--proxy", "http://127.0.0.1:1", "--rejected", rejected)

    ran = program("filter", "-a", "a", *through_a_proxy, stdin=b"ftp://h/\n")

    assert (ran.code, ran.stdout) == (0, "")
    assert rejected.read_text().startswith("ftp://h/\tonly a checker without a client")


def test_url_that_is_not_utf8_causes_no_fetch(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(body=_BODY))

    ran = program("filter", "-a", "a", stdin=f"{server.url}/".encode() + b"\xff\n")

    assert (ran.code, ran.stdout, server.targets) == (1, "", [])


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_lines_without_a_url_are_counted_and_make_it_exit_with_1(
    program: Callable[..., Ran], options: list[str]
) -> None:
    ran = program("filter", "-a", "a", *options, stdin=b"foo\n\nmailto:me\n")

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        "0 URLs, 0 allowed, 0 origins fetched, 0 failed; 2 lines without a URL\n"
    )
    ran = program("filter", "-a", "a", *options, stdin=b"foo\n")
    assert ran.stderr.endswith("; 1 line without a URL\n")


def test_urls_are_printed_in_the_bytes_that_came(
    serve: Callable[..., LoopbackServer],
) -> None:
    """In a locale other than UTF-8, it printed /\\u65e5\\u672c."""
    line = f"{serve(Reply(body=_BODY)).url}/日本\n"
    variables = os.environ | {"PYTHONIOENCODING": "ascii"}

    ran = installed("filter", "-q", "-a", "a", stdin=line.encode(), env=variables)

    assert (ran.code, ran.stdout) == (0, line)


def test_json_objects_pass_as_they_are(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    url = serve(Reply(body=_BODY)).url
    good = f'{{ "a":1, "link": "{url}/x"}}'
    bad = ["1", "{", "[" * 99_999, "{}", '{"link": 1}', '{"link": "x"}', "é"]
    disallowed = json.dumps({"link": f"{url}/p"})
    stdin = "\n".join([good, *bad, disallowed]).encode()
    rejected = tmp_path / "rejected"

    ran = program(
        *("filter", "-a", "a", "--json", "--field", "link"),
        *("--rejected", rejected),
        stdin=stdin,
    )

    assert ran.stdout == f"{good}\n"
    rows = [json.loads(row) for row in rejected.read_text().splitlines()]
    assert [row["line"] for row in rows] == [*bad, disallowed]
    assert [row["verdict"] is None for row in rows] == [True] * len(bad) + [False]
    assert rows[-1]["verdict"]["rule"]["line"] == 2
    assert "expected an absolute URL" in rows[5]["error"]


def test_second_run_with_a_store_fetches_nothing(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    server = serve(Reply(body=_BODY))
    store = f"sqlite:///{tmp_path}/robots.db"
    arguments = ("filter", "-a", "none,a", "--store", store)

    ran = [program(*arguments, stdin=f"{server.url}/x".encode()) for _ in range(2)]

    assert [one.stdout for one in ran] == [f"{server.url}/x\n"] * 2
    assert server.targets == ["/robots.txt"]


@pytest.mark.parametrize("arguments", [
    ["-a", "Mozilla/5.0"], [], ["-a", "a", "--rejected", "/nowhere/x"],
    ["-a", "a", "--rejected", "/dev/full"],
])  # fmt: skip
def test_trouble_is_one_line(program: Callable[..., Ran], arguments: list[str]) -> None:
    ran = program("filter", "-q", *arguments, stdin=b"x\n")

    assert (ran.code, ran.stderr.count("\n")) == (2, 1)


def test_ctrl_c_leaves_what_was_done(serve: Callable[..., LoopbackServer]) -> None:
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
    assert stderr.decode().startswith("1 URLs, 1 allowed, ")


def test_closed_pipe_ends_it_without_a_word(
    serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    urls, code = tmp_path / "urls", tmp_path / "code"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\n" * 20_000)

    ran = in_shell(
        f"{{ robotsgate filter -a a < {urls}; echo $? > {code}; }} | head -n 1"
    )

    assert (ran.stdout, ran.stderr) == (urls.read_text().partition("\n")[0] + "\n", "")
    assert code.read_text() == "141\n"


def _end_at_hang_up() -> None:
    """As in a terminal, even if the tests were started by nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@cases("number prepare", {
    "SIGTERM": (signal.SIGTERM, None),
    "SIGHUP": (signal.SIGHUP, _end_at_hang_up),
    "SIGTERM to a job in the background": (signal.SIGTERM, _ignore_ctrl_c),
})  # fmt: skip
def test_signal_that_ends_it_leaves_no_folder_behind(
    serve: Callable[..., LoopbackServer],
    tmp_path: Path,
    number: signal.Signals,
    prepare: Callable[[], None] | None,
) -> None:
    url = serve(Reply(body=_BODY)).url
    variables = os.environ | {"TMPDIR": f"{tmp_path}"}
    with running("filter", "-a", "a", env=variables, preexec_fn=prepare) as process:
        process.stdin.write(f"{url}/\n".encode())
        process.stdin.flush()
        process.stdout.readline()
        had_folder = any(tmp_path.iterdir())
        process.send_signal(number)
        _, stderr = process.communicate(timeout=30)

    assert had_folder
    assert not any(tmp_path.iterdir())
    assert process.returncode == 128 + number
    assert stderr.decode().startswith("1 URLs, 1 allowed, ")


def test_memory_does_not_grow_with_the_number_of_lines(
    serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    url = serve(Reply(body=_BODY)).url
    urls = tmp_path / "urls"
    urls.write_text(f"{url}/0123456789012345678901234567890123456789\n" * 300_000)
    output = tmp_path / "output"

    peak = peak_kib("filter", "-q", "-a", "a", stdin=urls, stdout=output)

    assert output.stat().st_size == urls.stat().st_size
    assert peak < 80 * 1_024


def test_terminal_gets_no_escapes_of_urls_and_no_progress_between_them(
    serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\x1b]0;x\u202e\n")

    shown = on_terminal("filter", "-a", "a", stdin=urls)

    assert re.match(rb"http://[^ ]+/\\x1b]0;x\\u202e\r\n1 URLs, 1 allowed, ", shown)


def test_terminal_that_is_closed_changes_no_answer(
    serve: Callable[..., LoopbackServer],
) -> None:
    line = f"{serve(Reply(body=_BODY)).url}/\n".encode()
    parent, terminal = pty.openpty()
    with running("filter", "-a", "a", stderr=terminal) as process:
        os.close(terminal)
        process.stdin.write(line)
        process.stdin.flush()
        process.stdout.readline()
        os.close(parent)
        stdout, _ = process.communicate(line, timeout=30)

    assert (process.returncode, stdout) == (0, line)


def test_progress_is_shown_on_a_terminal(
    serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    urls = tmp_path / "urls"
    urls.write_text(f"{serve(Reply(body=_BODY)).url}/\n" * 10)

    shown = on_terminal("filter", "-a", "a", stdin=urls, on_stderr=True)

    assert re.search(rb"10 URLs, [\d,]+/s, 1 origins, 0 failed ", shown)
    assert b"100 %" in shown
    assert b"http" not in shown
