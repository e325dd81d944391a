"""`robotsgate show`, `lint` and `diff`: rows, findings, differences and exit codes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.cli._explain import Finding, about_answer
from robotsgate.urls import Origin
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from tests.cli.conftest import Program, Serve
    from tests.servers.loopback import Answer

# --- show

_SHOWN = b"""\
Host: h
User-agent: a
User-agent: (
Disallow: /p\x1b # c
Crawl-delay: 5
Request-rate: 1/5
Clean-param: x
\tAllow: /p/ok
User-agent: *
Crawl-delay: 2m
Sitemap: /s.xml # c
Sitemap:
"""


def test_rows_show_what_applies_to_which_agents(program: Program) -> None:
    result = program("show", "-", stdin=_SHOWN)

    assert (result.code, result.stderr) == (0, "")
    assert [row.split("\t") for row in result.stdout.splitlines()] == [
        ["2", "a, (none)", "crawl-delay", "5"],
        ["2", "a, (none)", "request-rate", "1/5"],
        ["4", "a, (none)", "disallow", r"/p\x1b"],
        ["7", "a, (none)", "clean-param", "x"],
        ["8", "a, (none)", "allow", "/p/ok"],
        ["9", "*", "(no rules)", ""],
        ["9", "*", "crawl-delay", "120"],
        ["1", "", "host", "h"],
        ["11", "", "sitemap", "/s.xml"],
    ]


@pytest.mark.parametrize(("agent", "lines"), [("A/1.0", "22478"), ("b", "99")])
def test_only_what_applies_to_the_agent_is_shown(
    program: Program, agent: str, lines: str
) -> None:
    rows = program("show", "--agent", agent, "-", stdin=_SHOWN).stdout.splitlines()
    (shown,) = program("show", "-a", agent, "--json", "-", stdin=_SHOWN).records

    assert [row[0] for row in rows] == list(lines)
    assert [str(group["line"]) for group in shown["groups"]] == [lines[0]]


def test_stated_usage_preferences_are_shown_by_category(program: Program) -> None:
    body = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: search=yes\n"

    rows = program("show", "-", stdin=body).stdout.splitlines()
    (shown,) = program("show", "--json", "-", stdin=body).records

    assert rows[-2:] == ["2\t*\ttrain-ai of /\tdisallow", "3\t*\tsearch of /\tallow"]
    uses = shown["usage_preferences"]["content-usage"]
    assert uses["train-ai"] == {"preference": "disallow", "line": 2}


def test_raw_file_is_printed_unchanged(program: Program, serve: Serve) -> None:
    result = program("show", "--raw", serve(Reply(body=_SHOWN)).url)

    assert result.stdout.encode() == _SHOWN


@pytest.mark.parametrize("command", ["show", "lint"])
def test_unreadable_source_is_an_error(
    program: Program, serve: Serve, tmp_path: Path, command: str
) -> None:
    sources = {
        tmp_path: "Is a directory",
        "a\0b": "null byte",
        f"http://127.0.0.1:{dead_port()}/": "is unreachable (Connect",
        serve(Reply(status=404)).url: "is unavailable (404)",
    }
    for source, reason in sources.items():
        result = program(command, source)

        assert (result.code, result.stdout) == (2, "")
        assert result.stderr.startswith("robotsgate: ")
        assert (result.stderr.count("\n"), reason in result.stderr) == (1, True)


def test_missing_file_gets_a_hint_in_case_it_is_a_site(program: Program) -> None:
    for command in (["show"], ["lint"], ["diff", "-"]):
        result = program(*command, "no.example")

        assert (result.code, result.stdout) == (2, "")
        assert result.stderr.startswith("robotsgate: cannot read the file: ")
        assert result.stderr.endswith("; a site's URL begins with https://\n")


# --- lint

_PAGE = Path(__file__).parents[2] / "docs/reference/lint.md"

_ORIGIN = Origin.from_url("https://example.com/")

_LINTED = b"User-agent: a\n  Disalow: /\nDisallow: x\n"


def test_findings_are_printed_like_compiler_errors(
    program: Program, tmp_path: Path
) -> None:
    file = tmp_path / "robots.txt"
    file.write_bytes(_LINTED + b"<" * 600_000)

    result = program("lint", file)

    assert result.code == 1
    assert result.stdout.splitlines() == [
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
    assert result.stderr == "1 error, 2 warnings, 0 notes\n"


@cases("options body code", {
    "nothing to report": ([], b"User-agent: *\nAllow: /\n", 0),
    "a warning": ([], b"Allow: /\n", 0),
    "a warning with --strict": (["--strict"], b"Allow: /\n", 1),
    "a note with --strict": (["--strict"], b"Host: h\n", 0),
    "an error": ([], b"Disalow: /\n", 1),
    "an error in Google's dialect": (["--dialect", "google"], b"Disalow: /\n", 1),
})  # fmt: skip
def test_exit_code_reflects_the_worst_severity(
    program: Program, options: list[str], body: bytes, code: int
) -> None:
    result = program("lint", "-q", *options, "-", stdin=body)

    assert (result.code, result.stderr) == (code, "")


def test_findings_can_be_a_sarif_log(program: Program) -> None:
    result = program("lint", "--json", "--sarif", "-", stdin=b"<\nDisallow: /\n")

    (log,) = result.records
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


def test_several_files_share_one_summary_and_one_log(
    program: Program, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("a.txt", "b.txt")]
    for file in files:
        file.write_bytes(b"Disalow: /\n")

    result = program("lint", *files)
    (log,) = program("lint", "--sarif", *files).records

    assert result.code == 1
    assert [line.partition(":")[0] for line in result.stdout.splitlines()] == [
        str(file) for file in files
    ]
    assert result.stderr == "2 errors, 0 warnings, 0 notes\n"
    results = log["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    assert [one["artifactLocation"]["uri"] for one in places] == [
        str(file) for file in files
    ]


def test_missing_file_does_not_stop_the_others(program: Program) -> None:
    result = program("lint", "--json", "no.txt", "-", stdin=b"Disalow: /\n")

    message = "only lenient crawlers understand 'disalow'"
    place = {"file": "<stdin>", "line": 1, "column": 1}
    finding = {"severity": "error", "code": "misspelt-field", "message": message}
    assert (result.code, result.records) == (2, [place | finding])
    assert result.stderr.startswith("robotsgate: cannot read the file: ")


def test_fetched_file_is_linted_together_with_its_response(
    program: Program, serve: Serve
) -> None:
    server = serve(Reply(body=_LINTED, headers={"Content-Type": "text/html\x1b"}))

    result = program("lint", "--json", f"{server.url}/page")

    assert result.code == 1
    assert {one["file"] for one in result.records} == {f"{server.url}/robots.txt"}
    assert [one["code"] for one in result.records] == [
        "wrong-content-type",
        "misspelt-field",
        "unmatchable-pattern",
    ]


@cases("answer reason codes", {
    "no file": (Reply(status=404), "unavailable (404)\n", []),
    "an error": (Reply(status=503), "unreachable (503)\n", ["server-error"]),
    "an unknown coding": (
        Reply(headers={"Content-Encoding": "br"}, body=_LINTED),
        "unreachable (CodingError: expected the content coding gzip or deflate, ", [],
    ),
    "a broken header": (
        Raw(b"HTTP/1.1 200 OK\r\nBad\r\n\r\n"), "unreachable (Remote", [],
    ),
})  # fmt: skip
def test_response_without_a_file_is_an_error_that_says_why(
    program: Program, serve: Serve, answer: Answer, reason: str, codes: list[str]
) -> None:
    """lint used to say of each that there is no robots.txt."""
    server = serve(answer)

    result = program("lint", "--json", server.url)

    assert [one["code"] for one in result.records] == codes
    assert (result.code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(
        f"robotsgate: cannot read the robots.txt: {server.url}/robots.txt is {reason}"
    )


def _answer(*redirects: str, status: int = 200, **headers: str) -> Outcome:
    extra = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(
        status=status,
        headers={"content-type": "text/plain"} | extra,
        redirects=tuple((url, 301) for url in redirects),
    )


_ANSWERS = {
    "a good response": (_answer(content_type="Text/Plain; charset=utf-8"), []),
    "cached for a day": (_answer(cache_control="max-age=86400"), []),
    "cached for longer": (_answer(cache_control="max-age=86401"), ["long-caching"]),
    "not cached": (_answer(cache_control="no-store"), ["no-caching"]),
    "another content type": (_answer(content_type="text/html"), ["wrong-content-type"]),
    "no content type": (_answer(content_type=""), ["wrong-content-type"]),
    "a server error": (_answer(status=500), ["server-error"]),
    "too many requests": (_answer(status=429), ["server-error"]),
    "restricted access": (_answer(status=401), ["access-denied"]),
    "no file": (_answer(status=404), []),
    "a partial file": (_answer(status=206), []),
    "www and TLS": (_answer("https://www.example.com/robots.txt"), []),
    "two other sites":
        (_answer("http://www.example.com/", "http://a.test/", "http://b.test/"),
         ["foreign-redirect"]),
    "a failure": (Outcome(failure=FailureKind.TLS, error="no"), []),
}  # fmt: skip


def _findings(outcome: Outcome, origin: Origin = _ORIGIN) -> list[Finding]:
    has_response = outcome.failure is None
    return about_answer(
        origin,
        status=outcome.status if has_response else None,
        headers=outcome.headers if has_response else {},
        redirects=outcome.redirects,
        now=0.0,
    )


@cases("outcome codes", _ANSWERS)
def test_response_has_the_expected_findings(outcome: Outcome, codes: list[str]) -> None:
    findings = _findings(outcome)

    assert [one.code for one in findings] == codes


@pytest.mark.parametrize("status", [226, 550])
def test_ftp_response_is_not_judged_as_http(status: int) -> None:
    origin = Origin.from_url("ftp://example.com/")

    assert _findings(Outcome(status=status), origin) == []


def test_page_lists_every_finding_about_responses_with_its_severity() -> None:
    findings = [one for outcome, _ in _ANSWERS.values() for one in _findings(outcome)]
    _, page = _PAGE.read_text(encoding="utf-8").split("## Findings about the response")

    rows = re.findall(r"^### (.+)\n\n\*\*(\w+)\.\*\*$", page, re.MULTILINE)

    assert dict(rows) == {one.code: one.severity.value for one in findings}
    assert len(rows) == len(dict(rows))


# --- diff

_OLD = "User-agent: a\nDisallow: /p\n\nUser-agent: *\nDisallow: /s\n"
_NEW = "User-agent: a\nDisallow: /p/*/x$\n\nUser-agent: *\nDisallow: /s # c\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, text in zip(paths, (_OLD, _NEW), strict=True):
        path.write_text(text)
    return paths


def test_paths_to_compare_are_derived_from_the_patterns(
    program: Program, files: list[Path]
) -> None:
    result = program("diff", *files)

    assert (result.code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "/p\ta\tdisallowed (line 2: Disallow: /p)\tallowed",
        "/p//xx\ta\tdisallowed (line 2: Disallow: /p)\tallowed",
        "/px\ta\tdisallowed (line 2: Disallow: /p)\tallowed",
    ]


@cases("agents urls differing", {
    "given agents": (["-ab", "-ax,a"], ["/p"], [[["x", "a"], "/p"]]),
    "given URLs": ([], ["/s", "http://h/p"], [["a", "http://h/p"]]),
})  # fmt: skip
def test_only_the_given_agents_or_urls_are_compared(
    program: Program,
    files: list[Path],
    agents: list[str],
    urls: list[str],
    differing: list[list[object]],
) -> None:
    result = program("diff", "--json", *agents, *files, *urls)

    assert [[one["agent"], one["url"]] for one in result.records] == differing
    assert {one["new"]["allowed"] for one in result.records} == {True}


def test_crawler_with_two_names_is_printed_as_given(
    program: Program, files: list[Path]
) -> None:
    result = program("diff", "-a", "x,a", *files, "/p")

    assert result.stdout.startswith("/p\tx,a\t")


def test_equivalent_files_have_no_differences(program: Program, serve: Serve) -> None:
    server = serve(Reply(body=_OLD.encode()))

    result = program("diff", server.url, "-", stdin=_OLD.replace("/p", "/p*").encode())

    assert (result.code, result.stdout) == (0, "")


@pytest.mark.parametrize("url", ["", "x", "gopher://h/"])
def test_invalid_url_is_an_error(program: Program, files: list[Path], url: str) -> None:
    assert program("diff", *files, url).code == 2
