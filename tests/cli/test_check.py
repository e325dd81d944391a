"""`robotsgate check` in this process: verdicts, exit codes, explanations."""

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

    from tests.cli.conftest import Ran
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
    "any agent where none is named": (["/x"], 1, [False]),
    "some of them disallowed": (["-a", "a", "/x", "/p", "/x"], 1, [True, False, True]),
    "several agents": (["-a", "a", "-a", "b", "/x", "/p"], 1,
                       [True, False, False, False]),
    "one crawler with two names": (["-a", "none,news,a", "/p"], 0, [True]),
    "the same with spaces": (["-a", "none, news, a", "/p"], 0, [True]),
    "a header with a comma": (["-a", "Mozilla/5.0 (like, compatible; a/1.0)", "/p"], 1,
                              [False]),
})  # fmt: skip
def test_each_question_is_answered_in_order(
    program: Callable[..., Ran],
    site: str,
    arguments: list[str],
    code: int,
    answers: list[bool],
) -> None:
    ran = program(
        "check", "--json", *(site + a if a[0] == "/" else a for a in arguments)
    )

    assert ran.code == code
    assert [one["allowed"] for one in ran.records] == answers
    assert ran.stderr == ""


@cases("arguments lines", {
    "by a rule of its group":
        (["-a", "A", "/p"], ["disallowed {}/p: line 5 (Disallow: /p); {}"]),
    "by a rule for all agents":
        (["-a", "b", "/"],
         ["disallowed {}/: line 10 (Disallow: /, for all agents); {}"]),
    "by a group of a header":
        (["-a", "Mozilla/5.0 (compatible; a/1.0)", "/p/ok"],
         ["allowed {}/p/ok: line 6 (Allow: /p/ok, for a); {}"]),
    "without a rule": (["-a", "a", "/x"], ["allowed {}/x: no rule matches; {}"]),
    "robots.txt itself":
        (["/robots.txt"],
         ["allowed {}/robots.txt: robots.txt itself may always be fetched"]),
    "for several agents":
        (["-a", "a", "-a", "none,news", "/p"],
         ["disallowed {}/p for a: line 5 (Disallow: /p); {}",
          "allowed {}/p for none,news: no rule matches; {}"]),
})  # fmt: skip
def test_verdict_comes_first_and_its_reason_last(
    program: Callable[..., Ran], site: str, arguments: list[str], lines: list[str]
) -> None:
    ran = program("check", *(site + a if a[0] == "/" else a for a in arguments))

    assert ran.stdout.splitlines() == [
        line.format(site, "fresh for 23 h") for line in lines
    ]


@cases("status policy code answer", {
    "a server error":
        (500, "default", 3,
         "disallowed {}/: unreachable (500), no cached copy; next fetch in "),
    "too many requests":
        (429, "default", 3,
         "disallowed {}/: unreachable (429), no cached copy; next fetch in "),
    "a missing file":
        (404, "default", 0, "allowed {}/: no robots.txt (404); fresh for 23 h"),
    "a closed door":
        (403, "strict", 1,
         "disallowed {}/: access to robots.txt is restricted (403); fresh for "),
})  # fmt: skip
def test_code_says_whether_the_answer_was_decided(
    program: Callable[..., Ran],
    serve: Callable[..., LoopbackServer],
    status: int,
    policy: str,
    *,
    code: int,
    answer: str,
) -> None:
    server = serve(Reply(status=status))

    ran = program("check", "--policy", policy, f"{server.url}/")

    assert ran.code == code
    assert ran.stdout.startswith(answer.format(server.url))
    assert ran.stdout.count("\n") == 1


@cases("arguments stdin message", {
    "a URL without an origin": (["x"], b"", "expected an absolute URL"),
    "a line without an origin": (["-"], b"x\n", "expected an absolute URL"),
    "a line that is not UTF-8": ([], b"http://h/\xff\n", "expected a URL in UTF-8"),
    "a line without an end": ([], b"x" * 3_000_000 + b"\n\n", "at most 1048576 bytes"),
    "binary input": (["-"], bytes(range(11, 256)), "expected a URL in UTF-8"),
    "a store of no kind": (["--store", "x", "http://h/"], b"", "expected memory:"),
    "a store that cannot be opened":
        (["--store", "sqlite:////nowhere/x", "http://h/"], b"", "unable to open"),
    "a proxy of no kind": (["--proxy", "x", "http://h/"], b"", "Unknown scheme"),
    "an agent that names no crawler":
        (["-a", "Mozilla/5.0", "http://h/"], b"", "expected"),
    "an unknown option": (["--nope"], b"", "(see robotsgate check --help)"),
    "a time without an end": (["--timeout", "inf"], b"", "number of seconds, got inf"),
    "a header that cannot be sent":
        (["--user-agent", "\n", "http://h/"], b"", "expected user_agent"),
})  # fmt: skip
def test_trouble_is_one_line_on_stderr(
    program: Callable[..., Ran], arguments: list[str], stdin: bytes, message: str
) -> None:
    ran = program("check", *arguments, stdin=stdin)

    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert ran.stderr.startswith("robotsgate: ")
    assert ran.stderr.count("\n") == 1


def test_trouble_counts_before_what_is_undecided_and_stops_nothing(
    program: Callable[..., Ran], site: str
) -> None:
    dead = f"http://127.0.0.1:{dead_port()}/"

    ran = program("check", "--json", dead, "x", f"{site}/p")

    assert ran.code == 2
    assert [one["reason"] for one in ran.records] == [
        "unreachable",
        "disallowed-by-rule",
    ]
    assert program("check", dead, f"{site}/p").code == 3


def test_explanation_marks_the_line_and_names_what_competes(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    body = _BODY.replace(b"/p/ok/not", b"/p/ok/not\x1b[31m[bold]")
    server = serve(
        Routes({"/robots.txt": redirect("/other"), "/other": Reply(body=body)})
    )

    ran = program("check", "--explain", "-a", "a", f"{server.url}/p/ok")

    assert ran.stdout.splitlines()[1:] == [
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
        f"      302 to {server.url}/other",
        "    what would change the answer:",
        "      a Disallow line for a, with a matching pattern longer than /p/ok",
        "      removing line 6: line 5 would then apply",
    ]


@cases("path agent changes", {
    "a rule alone": ("/x", "b", (
        "an Allow line for all agents,"
        " with a matching pattern at least as long as /"
        " | removing line 10: no rule would then match"
        " | a group for 'b', which would then apply")),
    "an allow alone": ("/a", "c", (
        "a Disallow line for c, with a matching pattern longer than /")),
    "no rule": ("/x", "news", "a Disallow line for news whose pattern matches"),
    "robots.txt itself":
        ("/robots.txt", "a", "nothing: robots.txt itself may always be fetched"),
})  # fmt: skip
def test_explanation_says_what_would_change_the_answer(
    program: Callable[..., Ran],
    serve: Callable[..., LoopbackServer],
    path: str,
    agent: str,
    changes: str,
) -> None:
    server = serve(Reply(body=_BODY + b"\nUser-agent: c\nAllow: /\n"))

    ran = program("check", "--explain", "--json", "-a", agent, f"{server.url}{path}")

    assert ran.records[0]["explanation"]["changes"] == changes.split(" | ")


def test_only_the_first_of_many_rules_are_explained(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    rules = b"".join(b"Disallow: /%s\n" % (b"*" * n) for n in range(12))
    server = serve(Reply(body=b"User-agent: *\n" + rules))

    ran = program("check", "--explain", "--json", f"{server.url}/")

    why = ran.records[0]["explanation"]
    assert len(why["competing_rules"]) == 10
    assert ", …: no rule would then match" in why["changes"][1]


def test_unreachable_origin_is_explained_by_its_next_fetch(
    program: Callable[..., Ran],
) -> None:
    ran = program("check", "--explain", f"http://127.0.0.1:{dead_port()}/")

    assert "a file or a 404 from the server at the next fetch, at 2" in ran.stdout


def test_proxy_is_asked_instead_of_the_origin(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    proxy = serve(Reply(body=_BODY))

    ran = program("check", "--proxy", proxy.url, "-a", "a", "http://h.test/p")

    assert (ran.code, ran.stderr) == (1, "")
    assert proxy.targets == ["http://h.test/robots.txt"]


@cases("option count", {"usual": ("--json", 1), "quiet": ("-q", 0)})
def test_warning_is_one_line_unless_it_is_unwanted(
    program: Callable[..., Ran], site: str, tmp_path: Path, option: str, count: int
) -> None:
    """A store that fails during the run changes no answer."""
    path = tmp_path / "robots.db"
    program("check", "--store", f"sqlite:///{path}", site)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE kept SET value = x'00'")

    ran = program("check", option, "--store", f"sqlite:///{path}", f"{site}/")

    assert ran.code == 1
    assert ran.stderr.count("\n") == ran.stderr.count("robotsgate: WARNING: ") == count


def test_steps_are_logged_and_escaped_if_one_asks(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(status=302, headers={"Location": "gopher://\x1b[31m"}))

    ran = program("check", "-v", "--json", f"{server.url}/")

    assert "robotsgate: DEBUG: http://" in ran.stderr
    assert "\x1b" not in ran.stderr
