"""`robotsgate lint`: findings, their forms and the exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._outcome import Answered, Failed, FailureKind
from robotsgate.cli._findings import Finding, about_answer
from robotsgate.urls import Origin
from tests.servers.answers import Reply
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._outcome import Outcome
    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer

_PAGE = Path(__file__).parents[2] / "docs/reference/lint.md"

_ORIGIN = Origin.from_url("https://example.com/")

_BODY = b"User-agent: a\n  Disalow: /\nDisallow: x\n"


def test_finding_is_printed_as_compilers_do(
    program: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "robots.txt"
    file.write_bytes(_BODY + b"<" * 600_000)

    ran = program("lint", file)

    assert ran.code == 1
    assert ran.stdout.splitlines() == [
        (
            f"{file}:1:1: warning: the file is too long: only its beginning is read"
            " [file-cut]"
        ),
        (
            f"{file}:2:3: error: only lenient crawlers understand 'disalow'"
            " [misspelt-field]"
        ),
        (
            f"{file}:3:11: warning: 'x' does not start with / or *,"
            " so it matches nothing [unmatchable-pattern]"
        ),
    ]
    assert ran.stderr == "1 error, 2 warnings, 0 notes\n"


@cases("options body code", {
    "nothing to report": ([], b"User-agent: *\nAllow: /\n", 0),
    "a warning": ([], b"Allow: /\n", 0),
    "a warning that counts": (["--strict"], b"Allow: /\n", 1),
    "a note": (["--strict"], b"Host: h\n", 0),
    "an error": ([], b"Disalow: /\n", 1),
    "an error in the other dialect": (["--dialect", "google"], b"Disalow: /\n", 1),
})  # fmt: skip
def test_code_tells_the_worst_severity(
    program: Callable[..., Ran], options: list[str], body: bytes, code: int
) -> None:
    ran = program("lint", "-q", *options, "-", stdin=body)

    assert (ran.code, ran.stderr) == (code, "")


@pytest.mark.parametrize("option", ["--json", "--format=json"])
def test_findings_are_objects(program: Callable[..., Ran], option: str) -> None:
    ran = program("lint", option, "-", stdin=b"Disalow: /\n")

    assert ran.records == [
        {
            "file": "<stdin>",
            "line": 1,
            "column": 1,
            "severity": "error",
            "code": "misspelt-field",
            "message": "only lenient crawlers understand 'disalow'",
        }
    ]


def test_findings_are_a_sarif_log(program: Callable[..., Ran]) -> None:
    ran = program("lint", "--format", "sarif", "-", stdin=b"<\nDisallow: /\n")

    (log,) = ran.records
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"] == [
        {"id": "looks-like-html"},
        {"id": "no-colon"},
        {"id": "rule-outside-group"},
    ]
    levels = [(one["ruleId"], one["level"]) for one in run["results"]]
    assert levels == [
        ("looks-like-html", "warning"),
        ("no-colon", "error"),
        ("rule-outside-group", "warning"),
    ]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    uri = {"artifactLocation": {"uri": "%3Cstdin%3E"}}
    assert places == [
        uri,
        uri | {"region": {"startLine": 1, "startColumn": 1}},
        uri | {"region": {"startLine": 2, "startColumn": 1}},
    ]


def test_several_files_have_one_summary_and_one_log(
    program: Callable[..., Ran], tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt")]
    for file in files:
        file.write_bytes(b"Disalow: /\n")

    ran = program("lint", *files)
    (log,) = program("lint", "--format", "sarif", *files).records

    assert ran.code == 1
    assert [line.partition(":")[0] for line in ran.stdout.splitlines()] == [
        str(file) for file in files
    ]
    assert ran.stderr == "2 errors, 0 warnings, 0 notes\n"
    results = log["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    assert [one["artifactLocation"]["uri"] for one in places] == [
        str(file) for file in files
    ]


def test_missing_file_does_not_stop_the_others(program: Callable[..., Ran]) -> None:
    ran = program("lint", "--json", "no.txt", "-", stdin=b"Disalow: /\n")

    assert (ran.code, len(ran.records)) == (2, 1)
    assert ran.stderr.startswith("robotsgate: cannot read the file: ")


def test_file_of_a_server_is_looked_at_with_its_answer(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(body=_BODY, headers={"Content-Type": "text/html\x1b"}))

    ran = program("lint", "--json", f"{server.url}/page")

    assert ran.code == 1
    assert {one["file"] for one in ran.records} == {f"{server.url}/robots.txt"}
    assert [one["code"] for one in ran.records] == [
        "wrong-content-type",
        "misspelt-field",
        "unmatchable-pattern",
    ]


def test_answer_without_a_file_is_reported_and_is_trouble(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(status=503))

    ran = program("lint", "--json", server.url)

    assert [one["code"] for one in ran.records] == ["server-error"]
    assert (ran.code, ran.stderr) == (
        2,
        f"robotsgate: there is no robots.txt at {server.url}/robots.txt (503)\n",
    )


def _answer(*redirects: str, status: int = 200, **headers: str) -> Answered:
    kept = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answered(
        status=status,
        headers={"content-type": "text/plain"} | kept,
        redirects=tuple((url, 301) for url in redirects),
    )


_ANSWERS: dict[str, tuple[Outcome, list[str]]] = {
    "a sound one": (_answer(content_type="Text/Plain; charset=utf-8"), []),
    "a day": (_answer(cache_control="max-age=86400"), []),
    "more than a day": (_answer(cache_control="max-age=86401"), ["long-caching"]),
    "not at all": (_answer(cache_control="no-store"), ["no-caching"]),
    "another type": (_answer(content_type="text/html"), ["wrong-content-type"]),
    "no type": (_answer(content_type=""), ["wrong-content-type"]),
    "a server error": (_answer(status=500), ["server-error"]),
    "too many requests": (_answer(status=429), ["server-error"]),
    "a closed door": (_answer(status=401), ["access-denied"]),
    "no file": (_answer(status=404), []),
    "a part of a file": (_answer(status=206), []),
    "www and TLS": (_answer("https://www.example.com/robots.txt"), []),
    "two other sites": (
        _answer("http://www.example.com/", "http://a.test/", "http://b.test/"),
        ["foreign-redirect"],
    ),
    "a failure": (Failed(kind=FailureKind.TLS, error="no"), []),
}


def _findings(outcome: Outcome, origin: Origin = _ORIGIN) -> list[Finding]:
    has_response = isinstance(outcome, Answered)
    return about_answer(
        origin,
        status=outcome.status if has_response else None,
        headers=outcome.headers if has_response else {},
        redirects=outcome.redirects,
        now=0.0,
    )


@pytest.mark.parametrize(("outcome", "codes"), _ANSWERS.values(), ids=_ANSWERS.keys())
def test_answer_tells(outcome: Outcome, codes: list[str]) -> None:
    findings = _findings(outcome)

    assert [one.code for one in findings] == codes


@pytest.mark.parametrize("status", [226, 550])
def test_answer_over_ftp_is_not_judged_as_one_over_http(status: int) -> None:
    origin = Origin.from_url("ftp://example.com/")

    assert _findings(Answered(status=status), origin) == []


def test_page_lists_every_code_about_an_answer_with_its_severity() -> None:
    found = [one for outcome, _ in _ANSWERS.values() for one in _findings(outcome)]
    _, page = _PAGE.read_text(encoding="utf-8").split("## Findings about the response")

    rows = re.findall(r"^### (.+)\n\n\*\*(\w+)\.\*\*$", page, re.MULTILINE)

    assert dict(rows) == {one.code: one.severity.value for one in found}
    assert len(rows) == len(dict(rows))
