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
    from pathlib import Path

    from tests.cli.conftest import Program, Serve

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
def site(serve: Serve) -> str:
    return serve(Reply(body=_BODY)).url


_FRESH = "fresh for 24 h"


@cases("arguments code lines", {
    "by a rule of its group": (["-a", "A", "/p"], 1,
        [f"disallowed {{}}/p: line 5 (Disallow: /p, for a); {_FRESH}"]),
    "by a rule for all agents, if none is given": (["/"], 1,
        [f"disallowed {{}}/: line 10 (Disallow: /, for all agents); {_FRESH}"]),
    "by a group named in a header": (
        ["-a", "Mozilla/5.0 (like, compatible; a/1.0)", "/p/ok"], 0,
        [f"allowed {{}}/p/ok: line 6 (Allow: /p/ok, for a); {_FRESH}"]),
    "without a rule": (["-a", "a", "/x"], 0,
        [f"allowed {{}}/x: none of the rules for a in robots.txt match; {_FRESH}"]),
    "robots.txt itself": (["/robots.txt"], 0,
        ["allowed {}/robots.txt: robots.txt itself may always be fetched"]),
    "of several agents, one with two names": (
        ["-a", "a", "-a", "none, news", "/p", "/robots.txt"], 1,
        [f"disallowed {{}}/p for a: line 5 (Disallow: /p, for a); {_FRESH}",
         ("allowed {}/p for none,news: none of the rules for news in robots.txt match;"
          f" {_FRESH}"),
         "allowed {}/robots.txt for a: robots.txt itself may always be fetched",
         "allowed {}/robots.txt for none,news: robots.txt itself may always be fetched"]
    ),
})  # fmt: skip
def test_checks_are_answered_in_order_with_their_reasons(
    program: Program, site: str, arguments: list[str], *, code: int, lines: list[str]
) -> None:
    options = [site + one if one[0] == "/" else one for one in arguments]

    result = program("check", *options)
    records = program("check", "--json", *options).records

    assert (result.code, result.stderr) == (code, "")
    assert result.stdout.splitlines() == [line.format(site) for line in lines]
    assert [one["allowed"] for one in records] == [line[0] == "a" for line in lines]


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
    program: Program, serve: Serve, status: int, policy: str, *, code: int, answer: str
) -> None:
    server = serve(Reply(status=status))

    result = program("check", "--policy", policy, f"{server.url}/")

    assert result.code == code
    assert result.stdout.startswith(answer.format(server.url))
    assert result.stdout.count("\n") == 1


def test_error_outranks_unreachable_and_does_not_stop_the_run(
    program: Program, site: str
) -> None:
    dead = f"http://127.0.0.1:{dead_port()}/"

    result = program("check", "--json", dead, "x", f"{site}/p")
    explained = program("check", "--explain", dead, f"{site}/p")

    reasons = [one["reason"] for one in result.records]
    assert (result.code, reasons) == (2, ["unreachable", "disallowed-by-rule"])
    assert explained.code == 3
    assert "a file or a 404 from the server at the next fetch, at 2" in explained.stdout


def test_explanation_marks_the_line_and_lists_competing_rules(
    program: Program, serve: Serve
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


_NO_GROUP = b"User-agent: x\nDisallow: /\n"


@cases("body path agent changes", {
    "a single rule": (_BODY, "/x", "b", (
        "an Allow line for all agents,"
        " with a matching pattern at least as long as /"
        " | removing line 10: no rule would then match"
        " | a group for 'b', which would then apply")),
    "a single allow rule": (_BODY, "/a", "c", (
        "a Disallow line for c, with a matching pattern longer than /")),
    "no rule": (_BODY, "/x", "news", "a Disallow line for news whose pattern matches"),
    "a single rule, for all agents": (_BODY, "/x", "*", (
        "an Allow line for all agents,"
        " with a matching pattern at least as long as /"
        " | removing line 10: no rule would then match")),
    "robots.txt itself":
        (_BODY, "/robots.txt", "a", "nothing: robots.txt itself may always be fetched"),
    "no group": (_NO_GROUP, "/", "b", "a group for this agent, or for all agents (*)"),
    "no group for all agents": (_NO_GROUP, "/", "*", "a group for all agents (*)"),
})  # fmt: skip
def test_explanation_says_what_would_change_the_answer(
    program: Program, serve: Serve, body: bytes, path: str, *, agent: str, changes: str
) -> None:
    server = serve(Reply(body=body + b"\nUser-agent: c\nAllow: /\n"))

    result = program("check", "--explain", "--json", "-a", agent, f"{server.url}{path}")

    assert result.records[0]["explanation"]["changes"] == changes.split(" | ")


def test_only_the_first_of_many_rules_are_explained(
    program: Program, serve: Serve
) -> None:
    rules = b"".join(b"Disallow: /%s\n" % (b"*" * n) for n in range(12))
    server = serve(Reply(body=b"User-agent: *\n" + rules))

    result = program("check", "--explain", "--json", f"{server.url}/")

    explanation = result.records[0]["explanation"]
    assert len(explanation["competing_rules"]) == 10
    assert ", …: no rule would then match" in explanation["changes"][1]


@cases("option count", {"normal": ("--json", 1), "quiet": ("-q", 0)})
def test_warning_is_one_line_unless_quiet(
    program: Program, site: str, tmp_path: Path, option: str, count: int
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


def test_verbose_run_logs_escaped_steps(program: Program, serve: Serve) -> None:
    server = serve(Reply(status=302, headers={"Location": "gopher://\x1b[31m"}))

    result = program("check", "-v", "--json", f"{server.url}/")

    assert "robotsgate: DEBUG: http://" in result.stderr
    assert "\x1b" not in result.stderr
