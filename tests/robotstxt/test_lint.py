"""The diagnostics that the author of a robots.txt gets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from robotsgate.robotstxt import DiagnosticKind, Dialect, RobotsTxt, Severity
from tests.tables import cases

_DIALECTS = pytest.mark.parametrize("dialect", Dialect, ids=lambda one: one.value)

_GROUP = "User-agent: a\n"

_PAGE = Path(__file__).parents[2] / "docs/reference/lint.md"


def _diagnostics(
    body: bytes | str,
    *,
    dialect: Dialect = Dialect.RFC9309,
    max_bytes: int | None = 512_000,
) -> list[str]:
    """Each with its line, kind and message."""
    body = body.encode() if isinstance(body, str) else body  # a str may be a URL
    robots = RobotsTxt.parse(body, dialect=dialect, max_bytes=max_bytes)
    return [f"{one.line} {one.kind.value}: {one.message}" for one in robots.diagnostics]


def _kinds(body: bytes | str, **options: Any) -> list[str]:  # noqa: ANN401 (_diagnostics')
    """Each with its line and kind."""
    return [one.partition(":")[0] for one in _diagnostics(body, **options)]


@cases("body expected", {
    "no colon": (_GROUP + "Disallow /a",
        "2 no-colon: expected a colon after 'Disallow'"),
    "no colon and no known field": (_GROUP + "keep out",
        "2 no-colon: expected a field, a colon and a value"),
    "no field": (_GROUP + "\n : /a",
        "3 no-colon: expected a field, a colon and a value"),
    "unknown field": ("Host: a.test\xa0", "1 unknown-field: unknown field 'host'"),
    "long unknown field": ("\n" + "x" * 81 + ": y",
        f"2 unknown-field: unknown field '{'x' * 80}…'"),
    "typo that is not in the standard": (_GROUP + "Disalow: /",
        "2 misspelt-field: only lenient crawlers understand 'disalow'"),
    "underscore instead of a hyphen": ("User_Agent: a",
        "1 misspelt-field: only lenient crawlers understand 'user_agent'"),
    "rule outside any group": ("Disallow: /\n" + _GROUP,
        ("1 rule-outside-group: a rule before the first user-agent line applies to"
         " no agent: move it below one")),
    "no token": ("User-agent: (x)\nAllow: /",
        "1 no-product-token: '(x)' is not a product token"),
    "no token above a second delay": (
        _GROUP + "Crawl-delay: 1\nUser-agent: (\nCrawl-delay: 2",
        "3 no-product-token: '(' is not a product token"),
    "empty user-agent line": ("User-agent:\nAllow: /",
        "1 no-product-token: '' is not a product token"),
    "token with a version": ("User-agent: ExampleBot/1.0 # c\nAllow: /",
        "1 cut-product-token: 'ExampleBot/1.0' is read as 'examplebot'"),
    "star and a word": ("User-agent: * all\nAllow: /",
        "1 cut-product-token: '* all' is read as '*'"),
    "pattern without a slash": (_GROUP + "Disallow: private",
        ("2 unmatchable-pattern: 'private' does not start with / or *, so it matches"
         " nothing")),
    "pattern with a fragment": (_GROUP + "Disallow: /a#b",
        "2 cut-pattern: '#' starts a comment, so the pattern is '/a'"),
    "pattern with a dot segment": (_GROUP + "Disallow: /%2e%2E/a",
        "2 unmatchable-pattern: '/%2e%2E/a' contains a dot segment, which few URLs do"),
    "pattern that ends with a dot segment": (_GROUP + "Disallow: /a/..$",
        "2 unmatchable-pattern: '/a/..$' contains a dot segment, which few URLs do"),
    "pattern with a single-dot segment": (_GROUP + "Disallow: /./*",
        "2 unmatchable-pattern: '/./*' contains a dot segment, which few URLs do"),
    "the same rule twice": (_GROUP + "Disallow: /~a\nAllow: /b\nDisallow: /%7Ea",
        "4 duplicate-rule: this rule repeats line 2: remove one of the two lines"),
    "allow and disallow for the same pattern": (_GROUP + "Disallow: /a\nAllow: /a",
        ("2 tied-rule: line 3 allows the same URLs, and allow wins a tie: remove one"
         " of the two lines")),
    "an equally long allow rule that matches more": (_GROUP + "Disallow: /a\nAllow: /*",
        ("2 tied-rule: line 3 allows the same URLs, and allow wins a tie: remove one"
         " of the two lines")),
    "an allow rule for the same URLs, spelt differently": (
        _GROUP + "Disallow: *\nAllow: /",
        ("2 tied-rule: line 3 allows the same URLs, and allow wins a tie, so this"
         " line does not close the site: remove one of the two lines")),
    "a longer pattern that matches more": (_GROUP + "Allow: /?\nDisallow: /*?",
        ("2 overruled-rule: line 3 says the opposite and always wins: remove one of"
         " the two lines")),
    "a longer pattern that matches the same": (_GROUP + "Disallow: /a*\nAllow: /a",
        ("3 overruled-rule: line 2 says the opposite and always wins: remove one of"
         " the two lines")),
    "managed group that opens the site": (
        "User-agent: *\nAllow: /\n\nUser-agent: *\nDisallow: /",
        ("5 tied-rule: line 2 (in another group for '*') allows the same URLs, and"
         " allow wins a tie, so this line does not close the site: merge the groups"
         " and remove one of the two lines")),
    "longer rule in another group": (
        _GROUP + "Allow: /a\nUser-agent: b\nAllow: /\nUser-agent: a\nDisallow: /a*",
        ("2 overruled-rule: line 6 (in another group for 'a') says the opposite and"
         " always wins: merge the groups and remove one of the two lines")),
    "rule that is tied for one agent of its group": (
        _GROUP + "User-agent: b\nDisallow: /a\nUser-agent: b\nAllow: /a",
        ("3 tied-rule: line 5 (in another group for 'b') allows the same URLs, and"
         " allow wins a tie: merge the groups and remove one of the two lines")),
    "rule that repeats another for every agent of its group": (
        _GROUP + "User-agent: b\nDisallow: /a\nUser-agent: b\nDisallow: /a",
        ("5 duplicate-rule: this rule repeats line 3 (in another group for 'b'):"
         " merge the groups and remove one of the two lines")),
    "group without rules": ("\n" + _GROUP + "Crawl-delay: 1\n\nUser-agent: b\nAllow: /",
        ("2 group-without-rules: this group has no rules of its own, so the rules"
         " below line 5 apply to it as well: to keep the groups apart, put an empty"
         " 'Disallow:' below line 2")),
    "group with only a sitemap": (
        _GROUP + "Sitemap: http://h.test/s\nUser-agent: b\nAllow: /",
        ("1 group-without-rules: this group has no rules of its own, so the rules"
         " below line 3 apply to it as well: to keep the groups apart, put an empty"
         " 'Disallow:' below line 1")),
    "NUL": ("# a\0b", "1 nul: NUL byte, where some crawlers end the line"),
    "byte order mark in the middle": ("# a\n# \ufeffb",
        "2 byte-order-mark: byte order mark that is not at the start of the file"),
    "open escape": (_GROUP + "Disallow: /é/%2",
        ("2 open-escape: the '%' in '/é/%2' is not followed by two hexadecimal"
         " digits, so it also matches the start of an escape such as %20: write %25"
         " for a percent sign")),
    "percent sign that begins no escape": (_GROUP + "Disallow: /100%$",
        ("2 open-escape: the '%' in '/100%$' is not followed by two hexadecimal"
         " digits, so URLs in which it is sent as %25 do not match: write %25 for a"
         " percent sign")),
    "two patterns with a comma": (_GROUP + "Disallow: /a, /b",
        ("2 several-patterns: '/a, /b' is one pattern, which contains a space: to"
         " specify several patterns, give each its own line")),
    "two patterns with a space": (_GROUP + "Disallow: /a /b",
        ("2 several-patterns: '/a /b' is one pattern, which contains a space: to"
         " specify several patterns, give each its own line")),
    "slashes instead of a number sign": (_GROUP + "Disallow: /a // all",
        ("2 comment-sign: only '#' starts a comment, so the pattern is '/a // all':"
         " write '#' instead")),
    "semicolon instead of a number sign": (_GROUP + "Disallow: /a ;all",
        ("2 comment-sign: only '#' starts a comment, so the pattern is '/a ;all':"
         " write '#' instead")),
    "line that starts with slashes": ("  // Disallow: /a",
        "1 comment-sign: only '#' starts a comment: put it at the start of the line"),
    "line that starts with a semicolon": ("; all",
        "1 comment-sign: only '#' starts a comment: put it at the start of the line"),
    "two directives without a line end": ("User-agent: a\nDisallow: /aDisallow: /b",
        ("2 joined-lines: 'Disallow: /b' is read as part of this line: start a new"
         " line there")),
    "next group without a line end": (_GROUP + "Crawl-delay: 1User-agent: *",
        ("2 joined-lines: 'User-agent: *' is read as part of this line: start a new"
         " line there")),
    "empty rule without a line end": ("User-agent: *Disallow:\nSitemap: http://h.test/",
        ("1 joined-lines: 'Disallow:' is read as part of this line: start a new line"
         " there")),
    "line end written as text": ("\nUser-agent: *\\nDisallow: /\n",
        ("2 joined-lines: the whole file is on one line: put each directive on its"
         " own line")),
    "whole file in one comment": ("# all User-agent: * Disallow: /",
        ("1 joined-lines: the whole file is on one line: put each directive on its"
         " own line")),
    "URL alone": ("User-agent: a\nhttps://h.test/s.xml",
        ("2 bare-url: a URL alone has no effect: for a sitemap, write 'Sitemap:'"
         " before it")),
    "file that is only a URL": ("\nhttps://h.test/robots.txt\n",
        ("2 bare-url: a URL alone has no effect: for a sitemap, write 'Sitemap:'"
         " before it; to use the rules at that URL, redirect to it")),
    "no-break space in a path": (_GROUP + "Disallow: /a\xa0",
        ("2 invisible-character: crawlers read the invisible character U+00A0 as"
         " part of the line: delete it")),
    "directional mark in a path": (_GROUP + "Disallow: /א\u200e",
        ("2 invisible-character: crawlers read the invisible character U+200E as"
         " part of the line: delete it")),
    "joiner after ASCII": (_GROUP + "Disallow: /a\u200d",
        ("2 invisible-character: crawlers read the invisible character U+200D as"
         " part of the line: delete it")),
    "second delay": (_GROUP + "Crawl-delay: 1\nCrawl-delay: 2",
        ("3 second-rate: line 2 already sets the crawl-delay, so this line has no"
         " effect: remove one of the two lines")),
    "second rate in another group": (
        _GROUP + "Request-rate: 1/5\nAllow: /\nUser-agent: A\nRequest-rate: 1/6",
        ("5 second-rate: line 2 already sets the request-rate, so this line has no"
         " effect: remove one of the two lines")),
    "several sitemaps": ("Sitemap: http://h.test/a, http://h.test/b",
        ("1 several-sitemaps: several sitemaps on one line, which many crawlers read"
         " as one URL: give each its own line")),
    "sitemap with two schemes": ("Sitemap: https://https://h.test/",
        ("1 bad-sitemap: expected a URL with a full host name, such as"
         " https://example.com/sitemap.xml, got 'https://https://h.test/'")),
    "sitemap with an invalid port": ("Sitemap: https://h.test:99999/é",
        ("1 bad-sitemap: expected a URL with a full host name, such as"
         " https://example.com/sitemap.xml, got 'https://h.test:99999/é'")),
    "signal without a known category": ("Content-Signal: ai_train=no",
        ("1 bad-usage-preference: expected signals such as ai-train=no, got"
         " 'ai_train=no'")),
    "signals without a comma": ("Content-Signal: search=yes ai-train=no",
        ("1 bad-usage-preference: expected signals such as ai-train=no, got"
         " 'search=yes ai-train=no'")),
    "usage preference of another vocabulary": (_GROUP + "Content-Usage: /a train-ai=no",
        ("2 bad-usage-preference: expected categories with y or n, such as"
         " train-ai=n, got '/a train-ai=no'")),
    "usage preference that is not a dictionary": (
        _GROUP + "Content-Usage: train-ai=n;;",
        ("2 bad-usage-preference: expected categories with y or n, such as"
         " train-ai=n, got 'train-ai=n;;'")),
    "usage preference without a value": (_GROUP + "Content-Usage: train-ai",
        ("2 bad-usage-preference: expected categories with y or n, such as"
         " train-ai=n, got 'train-ai'")),
    "relative license": ("License: /l.xml",
        "1 bad-usage-preference: expected an absolute URL, got '/l.xml'"),
    "relative sitemap": ("\nSitemap: /s.xml",
        "2 relative-sitemap: a sitemap must be an absolute URL"),
    "negative delay": (_GROUP + "Crawl-delay: -1",
        "2 bad-crawl-delay: expected a number of seconds such as 10 or 0.5, got '-1'"),
    "delay outside any group": ("Crawl-delay: 1",
        ("1 rule-outside-group: a crawl-delay before the first user-agent line"
         " applies to no agent: move it below one")),
    "rate outside any group": ("Request-rate: 1/5\n" + _GROUP,
        ("1 rule-outside-group: a request-rate before the first user-agent line"
         " applies to no agent: move it below one")),
    "usage rule outside any group": ("Content-Usage: train-ai=n",
        ("1 rule-outside-group: a content-usage before the first user-agent line"
         " applies to no agent: move it below one")),
    "rate without a period": (_GROUP + "Request-rate: 5",
        "2 bad-request-rate: expected a rate such as 1/5 or 10/1m, got '5'"),
})  # fmt: skip
def test_problem_is_reported_with_its_line_number(body: str, expected: str) -> None:
    assert _diagnostics(body) == [expected]


@pytest.mark.parametrize("names", [("Web", "Web Copier"), ("Web Copier", "Web")])
def test_groups_for_similar_names_do_not_repeat_each_other(
    names: tuple[str, str],
) -> None:
    body = "".join(f"User-agent: {name}\nDisallow: /\n" for name in names)

    assert len(_kinds(body)) == 1


@pytest.mark.parametrize(("agents", "reported"), [(10, 10), (300, 0)])
def test_groups_that_overlap_too_much_are_not_merged(
    agents: int, reported: int
) -> None:
    names = [f"User-agent: a{number}\n" for number in range(agents)]
    body = "".join([*names, "Allow: /\n", *(f"{name}Allow: /\n" for name in names)])

    assert len(_diagnostics(body)) == reported


@cases("agents line agent", {
    "all agents": ("*,,b", 1, "all agents"),
    "all agents above several": ("*,,b,c", 1, "all agents"),
    "all agents among others": ("b,*,,c", 2, "all agents"),
    "one agent": ("b,,*", 1, "'b'"),
})  # fmt: skip
def test_gap_does_not_keep_groups_apart(agents: str, line: int, agent: str) -> None:
    names = (f"User-agent: {name}" if name else "#" for name in agents.split(","))
    last = agents.count(",") + 2

    (diagnostic,) = _diagnostics("\n".join([*names, "Disallow: /"]))

    assert diagnostic.startswith("1 group-without-rules: ")
    assert diagnostic.endswith(
        f" apply to it as well, and line {last} closes the site for {agent}: to keep"
        f" the groups apart, put an empty 'Disallow:' below line {line}"
    )


@cases("body column severity", {
    "a field": ("  Disalow : /a", 3, Severity.ERROR),
    "a missing colon": ("\tDisallow /a", 2, Severity.ERROR),
    "a value": (_GROUP + "Crawl-delay:  é", 15, Severity.WARNING),
    "an empty value": ("User-agent:", 12, Severity.WARNING),
    "part of a value": (_GROUP + "Allow: /é#b", 10, Severity.WARNING),
    "a byte": ("#é\0", 3, Severity.ERROR),
    "a whole line": ("Disallow: /", 0, Severity.WARNING),
    "the whole file": ("<html", 0, Severity.WARNING),
    "an unknown field": (" Host: h", 2, Severity.NOTE),
})  # fmt: skip
def test_diagnostic_has_a_column_and_a_severity(
    body: str, column: int, severity: Severity
) -> None:
    diagnostic = RobotsTxt.parse(body).diagnostics[0]

    assert (diagnostic.column, diagnostic.severity) == (column, severity)


@_DIALECTS
def test_encoding_other_than_utf8_is_reported_for_the_whole_file(
    dialect: Dialect,
) -> None:
    body = "\ufeffSitemap: http://h/".encode("utf-16-le")

    assert _diagnostics(body, dialect=dialect)[0] == (
        "0 not-utf8: the file is in utf-16-le, which many crawlers cannot read"
    )


def test_docs_list_every_kind_with_its_severity() -> None:
    body = (
        b"<html>\nDisallow: /\nUser-agent: (\nUser-agent: a/1\nhost: \xff\n"
        b"User-agent: b\nDisalow: /\nAllow: x\nSitemap: s\nCrawl-delay: x\n"
        b"Request-rate: x\nAllow: /a#b\nAllow: /a\nDisallow: /a*\nAllow: /b\n"
        b"Disallow: /b\nDisallow: /%\nDisallow: /d /e\nDisallow: /f;\xc2\xad\n"
        b"Sitemap: http://h/ http://h.test/\nCrawl-delay: 1\n"
        b"License: l\nAllow: /Allow: /\n#\0\n#\xef\xbb\xbf\n" + b"#" * 17_000 + b"\n#"
    )

    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE, max_bytes=len(body) - 1)
    diagnostics = robots.diagnostics
    others = RobotsTxt.parse(b"; a\nhttp://h.test/").diagnostics  # not on a page
    page, _ = _PAGE.read_text(encoding="utf-8").split("## Findings about the response")

    rows = re.findall(r"^### (.+)\n\n\*\*(\w+)\.\*\*$", page, re.MULTILINE)
    assert [kind for kind, _ in rows] == [kind.value for kind in DiagnosticKind]
    assert dict(rows) == {
        each.kind.value: each.severity.value for each in (*diagnostics, *others)
    }
    lines = [each.line for each in diagnostics]
    assert lines == sorted(lines)


@cases("body kinds", {
    "once, and after valid UTF-8":
        ("# é\n#\n".encode() + b"# \xff\n# \xff", ["3 not-utf8"]),
    "after a CR": (b"#\r# \xff\r# \xff", ["2 not-utf8"]),
    "after CRLF": (b"#\r\n# \xff\r\n# \xff", ["2 not-utf8"]),
    "a genuine replacement character": ("# \ufffd".encode(), []),
    "invalid bytes next to one": ("# \ufffd".encode() + b"\xff", ["1 not-utf8"]),
})  # fmt: skip
def test_invalid_utf8_is_reported(body: bytes, kinds: list[str]) -> None:
    """A genuine U+FFFD in the line used to hide the invalid bytes."""
    assert _kinds(body) == kinds


@cases("body limit is_cut", {
    "a line is left out": ("Allow: /\n#\n", 9, True),
    "the whole file is read": ("#\n", 2, False),
    "the last line end is left out": ("#\n", 1, True),
    "an empty file": ("", 0, False),
    "no limit": ("#" * 600_000, None, False),
})  # fmt: skip
def test_file_longer_than_the_limit_is_reported(
    body: str, limit: int | None, *, is_cut: bool
) -> None:
    assert ("0 file-cut" in _kinds(body, max_bytes=limit)) is is_cut


@pytest.mark.parametrize("body", ["<html>\n", "\r\n <!DOCTYPE html>\n", "<?xml?>"])
def test_html_page_is_reported_first(body: str) -> None:
    first, *rest = _kinds(body)

    assert first == "0 looks-like-html"
    assert {kind.split()[1] for kind in rest} == {"no-colon"}


def test_rules_are_not_compared_with_too_many_wildcards() -> None:
    wildcards = "".join(f"Disallow: /*?{number}\n" for number in range(400))
    rules = "".join(f"Allow: /?{number}\n" for number in range(400))

    assert _diagnostics(_GROUP + wildcards + rules) == []
    assert len(_diagnostics(_GROUP + wildcards + rules[:100])) > 0


@cases("body diagnostics", {
    "an overlong line": (_GROUP + "#" * 16_663 + "\n" + "#" * 16_664,
        ["3 line-cut: only the first 16663 bytes of the line are read"]),
    "a line cut at a NUL": ("#\0\r#",
        ["1 line-cut: only the first 1 bytes of the line are read",
         "1 nul: NUL byte, where some crawlers end the line"]),
    "a typo": (_GROUP + "Disalow: /",
        ["2 misspelt-field: only lenient crawlers understand 'disalow'"]),
    "a longer word": (_GROUP + "Disallowed: /",
        ["2 misspelt-field: only lenient crawlers understand 'disallowed'"]),
    "site-map": (_GROUP + "site-map: http://h.test/",
        ["2 misspelt-field: only lenient crawlers understand 'site-map'"]),
    "digits are cut": ("user-agent: b1",
        ["1 cut-product-token: 'b1' is read as 'b'"]),
    "no colon": ("user-agent b1",
        ["1 no-colon: expected a colon after 'user-agent'"]),
    "no token": ("user-agent: \xe9",
        ["1 no-product-token: 'é' is not a product token"]),
})  # fmt: skip
def test_problem_is_reported_in_the_google_dialect(
    body: str, diagnostics: list[str]
) -> None:
    assert _diagnostics(body, dialect=Dialect.GOOGLE) == diagnostics


def test_overlong_line_is_reported_in_the_google_dialect_only() -> None:
    assert _diagnostics("#" * 16_664) == []


@pytest.mark.parametrize("body", [
    "", "# only a comment\n", " \t\n", "User-agent: *\nDisallow:\n",
    "User-agent: a\nUser-agent: b-1.0\nDisallow: /a\nAllow: *b$\n",
    "User-agent: a\nCrawl-delay: 5\nRequest-rate: 1/5\n", "Sitemap: https://[::1]/s.xml\n",
    "\ufeffUser-agent: a\n", "User-agent: a\nCrawl-delay: 1\nUser-agent: b\n",
    "User-agent: a\n\nUser-agent: b\nAllow: /a # b\nDisallow: # c\n",
    "User-agent: a\nDisallow: /a*\nDisallow: /a\nAllow: /?/../\nAllow: /.a/..b\n",
    "User-agent: a\nDisallow: /\nUser-agent: b\nAllow: /\n",
    "User-agent: a\nDisallow: /a\nAllow: /*a$\nAllow: /*b\n",
    "User-agent: a\nDisallow: /a b,c;d//e\nDisallow: //f\nDisallow: /%2F%d9*%41\n",
    "User-agent: a\nDisallow: /Disallow:a\nDisallow: /sitemap:a\n",
    "User-agent: a\nDisallow: /م\u200cم\nDisallow: /👩\u200d🚀 #\u200b\n",
    "User-agent: a\nDisallow: /a\nUser-agent: a\nUser-agent: b\nDisallow: /a\n",
    "User-agent: a\nDisallow: /a\nUser-agent: *\nAllow: /a\n",
    _GROUP + "Crawl-delay: 1\nAllow:\nUser-agent: a\nUser-agent: b\nCrawl-delay: 2\n",
    "User-agent: a\nCrawl-delay: 1\nUser-agent: b\nCrawl-delay: 2\n",
    "User-agent: a\nCrawl-delay: 60\nCrawl-delay: 1m\n",
    "User-agent: *\nUser-agent: a\nDisallow: /\n",
    "User-agent: a\n\nUser-agent: b\nDisallow: /\n",
    "User-agent: *\n\nUser-agent: a\nDisallow: /a\nDisallow:\n",
    "Sitemap: http://h.test/a?b=c,d\nSitemap: ftp://127.0.0.1/a b\n",
    "User-agent: a\nContent-Usage: /a train-ai=n, x=1\nContent-Usage: search=y\n",
    "Content-Signal: search=yes, ai-train=no, x\nLicense: https://h.test/l.xml\n",
])  # fmt: skip
def test_valid_file_has_no_diagnostics(body: str) -> None:
    assert _diagnostics(body) == []
