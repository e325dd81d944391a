"""`robotsgate check` in this process: verdicts, exit codes and explanations."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply, Routes, redirect
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer

_BODY = b"""\
User-agent: news
Disallow:

User-agent: a
Disallow: /p
Allow: /p/ok
Disallow: /p/ok/not

User-agent: *
Disallow: /
"""


@pytest.fixture
def site(serve: Callable[..., LoopbackServer]) -> str:
    return serve(Reply(body=_BODY)).url


@cases("arguments code answers", {
    "allowed": (["-a", "a", "/x"], 0, [True]),
    "any agent if none is given": (["/x"], 1, [False]),
    "some URLs disallowed": (["-a", "a", "/x", "/p", "/x"], 1, [True, False, True]),
    "several agents": (["-a", "a", "-a", "b", "/x", "/p"], 1,
                       [True, False, False, False]),
    "one crawler with two names": (["-a", "none,news,a", "/p"], 0, [True]),
    "the same with spaces": (["-a", "none, news, a", "/p"], 0, [True]),
    "a header with a comma": (["-a", "Mozilla/5.0 (like, compatible; a/1.0)", "/p"], 1,
                              [False]),
})  # fmt: skip
def test_checks_are_answered_in_order(
    program: Callable[..., Result],
    site: str,
    arguments: list[str],
    code: int,
    answers: list[bool],
) -> None:
    result = program(
        "check", "--json", *(site + a if a[0] == "/" else a for a in arguments)
    )

    assert result.code == code
    assert [one["allowed"] for one in result.records] == answers
    assert result.stderr == ""


@cases("arguments lines", {
    "by a rule of its group":
        (["-a", "A", "/p"], ["disallowed {}/p: line 5 (Disallow: /p, for a); {}"]),
    "by a rule for all agents":
        (["-a", "b", "/"],
         ["disallowed {}/: line 10 (Disallow: /, for all agents); {}"]),
    "by a group named in a header":
        (["-a", "Mozilla/5.0 (compatible; a/1.0)", "/p/ok"],
         ["allowed {}/p/ok: line 6 (Allow: /p/ok, for a); {}"]),
    "without a rule":
        (["-a", "a", "/x"],
         ["allowed {}/x: none of the rules for a in robots.txt match; {}"]),
    "robots.txt itself":
        (["/robots.txt"],
         ["allowed {}/robots.txt: robots.txt itself may always be fetched"]),
    "for several agents":
        (["-a", "a", "-a", "none,news", "/p"],
         ["disallowed {}/p for a: line 5 (Disallow: /p, for a); {}",
          ("allowed {}/p for none,news: none of the rules for news in robots.txt match;"
           " {}")]),
})  # fmt: skip
def test_verdict_comes_first_and_its_reason_last(
    program: Callable[..., Result], site: str, arguments: list[str], lines: list[str]
) -> None:
    result = program("check", *(site + a if a[0] == "/" else a for a in arguments))

    assert result.stdout.splitlines() == [
        line.format(site, "fresh for 24 h") for line in lines
    ]


@cases("status policy code answer", {
    "a server error":
        (500, "default", 3,
         ("disallowed {}/: robots.txt is unreachable (500), and there is no usable"
          " cached copy; next fetch in ")),
    "a missing file":
        (404, "default", 0,
         "allowed {}/: robots.txt is unavailable (404); fresh for 24 h"),
    "restricted access":
        (403, "strict", 1,
         "disallowed {}/: access to robots.txt is restricted (403); fresh for "),
})  # fmt: skip
def test_exit_code_tells_unreachable_from_disallowed(
    program: Callable[..., Result],
    serve: Callable[..., LoopbackServer],
    status: int,
    policy: str,
    *,
    code: int,
    answer: str,
) -> None:
    server = serve(Reply(status=status))

    result = program("check", "--policy", policy, f"{server.url}/")

    assert result.code == code
    assert result.stdout.startswith(answer.format(server.url))
    assert result.stdout.count("\n") == 1


@cases("arguments stdin message", {
    "a URL without an origin": (["x"], b"", "expected an absolute URL"),
    "a line without an origin": (["-"], b"x\n", "expected an absolute URL"),
    "a line that is not UTF-8": ([], b"http://h/\xff\n", "expected a line in UTF-8"),
    "an overlong line": ([], b"x" * 3_000_000 + b"\n\n", "at most 1048576 bytes"),
    "an unknown store": (["--store", "x", "http://h/"], b"", "expected memory:"),
    "a store that cannot be opened":
        (["--store", "sqlite:////nowhere/x", "http://h/"], b"", "an existing folder"),
    "a store that cannot be reached":
        (["--store", f"redis://127.0.0.1:{dead_port()}", "http://h/"], b"", "Redis"),
    "an unknown proxy": (["--proxy", "x", "http://h/"], b"", "Unknown scheme"),
    "an agent that names no crawler":
        (["-a", "Mozilla/5.0", "http://h/"], b"", "expected"),
    "an unknown option": (["--nope"], b"", "(see robotsgate check --help)"),
    "an infinite timeout": (["--timeout", "inf"], b"", "finite number above 0"),
    "a header that cannot be sent":
        (["--user-agent", "\n", "http://h/"], b"", "expected user_agent"),
})  # fmt: skip
def test_error_is_one_line_on_stderr(
    program: Callable[..., Result], arguments: list[str], stdin: bytes, message: str
) -> None:
    result = program("check", *arguments, stdin=stdin)

    assert (result.code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.startswith("robotsgate: ")
    assert result.stderr.count("\n") == 1


def test_error_outranks_unreachable_and_does_not_stop_the_run(
    program: Callable[..., Result], site: str
) -> None:
    dead = f"http://127.0.0.1:{dead_port()}/"

    result = program("check", "--json", dead, "x", f"{site}/p")

    assert result.code == 2
    assert [one["reason"] for one in result.records] == [
        "unreachable",
        "disallowed-by-rule",
    ]
    assert program("check", dead, f"{site}/p").code == 3


def test_explanation_marks_the_line_and_lists_competing_rules(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    body = _BODY.replace(b"/p/ok/not", b"/p/ok/not\x1b[31m[bold]")
    server = serve(
        Routes({"/robots.txt": redirect("/other"), "/other": Reply(body=body)})
    )

    site = server.url
    file = f"{site}/robots.txt, which redirects to {site}/other"

    result = program("check", "--explain", "-a", "a", f"{site}/p/ok")

    assert result.stdout.splitlines() == [
        f"allowed {site}/p/ok: line 6 (Allow: /p/ok, for a) of {file}; fresh for 24 h",
        "    3 | ",
        "    4 | User-agent: a",
        "    5 | Disallow: /p",
        "  > 6 | Allow: /p/ok",
        r"    7 | Disallow: /p/ok/not\x1b[31m[bold]",
        "    8 | ",
        "    9 | User-agent: *",
        "    matching rules, in order of priority:",
        "      line 6: Allow: /p/ok",
        "      line 5: Disallow: /p",
        "    redirects:",
        f"      302 to {site}/other",
        "    what would change the answer:",
        "      a Disallow line for a, with a matching pattern longer than /p/ok",
        "      removing line 6: line 5 would then apply",
    ]


@cases("path agent changes", {
    "a single rule": ("/x", "b", (
        "an Allow line for all agents,"
        " with a matching pattern at least as long as /"
        " | removing line 10: no rule would then match"
        " | a group for 'b', which would then apply")),
    "a single allow rule": ("/a", "c", (
        "a Disallow line for c, with a matching pattern longer than /")),
    "no rule": ("/x", "news", "a Disallow line for news whose pattern matches"),
    "a single rule, for all agents": ("/x", "*", (
        "an Allow line for all agents,"
        " with a matching pattern at least as long as /"
        " | removing line 10: no rule would then match")),
    "robots.txt itself":
        ("/robots.txt", "a", "nothing: robots.txt itself may always be fetched"),
})  # fmt: skip
def test_explanation_says_what_would_change_the_answer(
    program: Callable[..., Result],
    serve: Callable[..., LoopbackServer],
    path: str,
    agent: str,
    changes: str,
) -> None:
    server = serve(Reply(body=_BODY + b"\nUser-agent: c\nAllow: /\n"))

    result = program("check", "--explain", "--json", "-a", agent, f"{server.url}{path}")

    assert result.records[0]["explanation"]["changes"] == changes.split(" | ")


@cases("agent change", {
    "one agent": ("b", "a group for this agent, or for all agents (*)"),
    "all agents": ("*", "a group for all agents (*)"),
})  # fmt: skip
def test_explanation_without_a_group_asks_for_one(
    program: Callable[..., Result],
    serve: Callable[..., LoopbackServer],
    agent: str,
    change: str,
) -> None:
    server = serve(Reply(body=b"User-agent: a\nDisallow: /\n"))

    result = program("check", "--explain", "--json", "-a", agent, f"{server.url}/")

    assert result.records[0]["explanation"]["changes"] == [change]


def test_only_the_first_of_many_rules_are_explained(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    rules = b"".join(b"Disallow: /%s\n" % (b"*" * n) for n in range(12))
    server = serve(Reply(body=b"User-agent: *\n" + rules))

    result = program("check", "--explain", "--json", f"{server.url}/")

    explanation = result.records[0]["explanation"]
    assert len(explanation["competing_rules"]) == 10
    assert ", …: no rule would then match" in explanation["changes"][1]


def test_explanation_of_an_unreachable_origin_names_the_next_fetch(
    program: Callable[..., Result],
) -> None:
    result = program("check", "--explain", f"http://127.0.0.1:{dead_port()}/")

    assert "a file or a 404 from the server at the next fetch, at 2" in result.stdout


def test_request_goes_to_the_proxy_instead_of_the_origin(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    proxy = serve(Reply(body=_BODY))

    result = program("check", "--proxy", proxy.url, "-a", "a", "http://h.test/p")

    assert (result.code, result.stderr) == (1, "")
    assert proxy.targets == ["http://h.test/robots.txt"]


@cases("option count", {"normal": ("--json", 1), "quiet": ("-q", 0)})
def test_warning_is_one_line_unless_quiet(
    program: Callable[..., Result], site: str, tmp_path: Path, option: str, count: int
) -> None:
    """A store that fails during the run does not change the answer."""
    path = tmp_path / "robots.db"
    program("check", "--store", f"sqlite:///{path}", site)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE kept SET value = x'00'")

    result = program("check", option, "--store", f"sqlite:///{path}", f"{site}/")

    assert result.code == 1
    assert (
        result.stderr.count("\n")
        == result.stderr.count("robotsgate: WARNING: ")
        == count
    )


def test_verbose_run_logs_escaped_steps(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(status=302, headers={"Location": "gopher://\x1b[31m"}))

    result = program("check", "-v", "--json", f"{server.url}/")

    assert "robotsgate: DEBUG: http://" in result.stderr
    assert "\x1b" not in result.stderr
