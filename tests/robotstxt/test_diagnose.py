"""What the author of a robots.txt is told."""

from __future__ import annotations

import pytest

from robotsgate.robotstxt import DiagnosticKind, Dialect, RobotsTxt

_GROUP = "User-agent: a\n"


def _found(
    body: bytes | str,
    *,
    dialect: Dialect = Dialect.RFC9309,
    max_bytes: int | None = 512_000,
) -> list[tuple[int, DiagnosticKind, str]]:
    robots = RobotsTxt.parse(body, dialect=dialect, max_bytes=max_bytes)
    return [(one.line, one.kind, one.message) for one in robots.diagnostics]


@pytest.mark.parametrize(
    ("body", "line", "kind", "message"),
    [
        pytest.param(
            _GROUP + "Disallow /a",
            2,
            DiagnosticKind.NO_COLON,
            "expected a field, a colon and a value",
            id="no colon",
        ),
        pytest.param(
            _GROUP + "\n : /a",
            3,
            DiagnosticKind.NO_COLON,
            "expected a field, a colon and a value",
            id="no field",
        ),
        pytest.param(
            "Host: example.com",
            1,
            DiagnosticKind.UNKNOWN_FIELD,
            "unknown field 'host'",
            id="unknown field",
        ),
        pytest.param(
            "\n" + "x" * 81 + ": y",
            2,
            DiagnosticKind.UNKNOWN_FIELD,
            f"unknown field '{'x' * 80}…'",
            id="long unknown field",
        ),
        pytest.param(
            _GROUP + "Disalow: /",
            2,
            DiagnosticKind.UNKNOWN_FIELD,
            "unknown field 'disalow'",
            id="typo that the standard does not know",
        ),
        pytest.param(
            "Disallow: /\n" + _GROUP,
            1,
            DiagnosticKind.RULE_OUTSIDE_GROUP,
            "a rule before the first user-agent line binds nobody",
            id="rule outside of groups",
        ),
        pytest.param(
            "User-agent: (x)\nAllow: /",
            1,
            DiagnosticKind.NO_PRODUCT_TOKEN,
            "'(x)' names no product token",
            id="no token",
        ),
        pytest.param(
            "User-agent:\nAllow: /",
            1,
            DiagnosticKind.NO_PRODUCT_TOKEN,
            "'' names no product token",
            id="empty user-agent line",
        ),
        pytest.param(
            "User-agent: ExampleBot/1.0 # c\nAllow: /",
            1,
            DiagnosticKind.CUT_PRODUCT_TOKEN,
            "'ExampleBot/1.0' is read as 'examplebot'",
            id="token with a version",
        ),
        pytest.param(
            "User-agent: * all\nAllow: /",
            1,
            DiagnosticKind.CUT_PRODUCT_TOKEN,
            "'* all' is read as '*'",
            id="star and a word",
        ),
        pytest.param(
            _GROUP + "Disallow: private",
            2,
            DiagnosticKind.UNMATCHABLE_PATTERN,
            "'private' begins with neither / nor * and matches nothing",
            id="pattern without a slash",
        ),
        pytest.param(
            "\nSitemap: /s.xml",
            2,
            DiagnosticKind.RELATIVE_SITEMAP,
            "a sitemap must be an absolute URL",
            id="relative sitemap",
        ),
        pytest.param(
            _GROUP + "Crawl-delay: -1",
            2,
            DiagnosticKind.BAD_CRAWL_DELAY,
            "expected seconds such as 10 or 0.5, got '-1'",
            id="negative delay",
        ),
        pytest.param(
            "Crawl-delay: é",
            1,
            DiagnosticKind.BAD_CRAWL_DELAY,
            "expected seconds such as 10 or 0.5, got 'é'",
            id="delay outside of groups",
        ),
        pytest.param(
            _GROUP + "Request-rate: 5",
            2,
            DiagnosticKind.BAD_REQUEST_RATE,
            "expected a rate such as 1/5 or 10/1m, got '5'",
            id="rate without a period",
        ),
    ],
)
def test_odd_line_is_told_with_its_number(
    body: str, line: int, kind: DiagnosticKind, message: str
) -> None:
    assert _found(body) == [(line, kind, message)]


def test_every_kind_of_diagnostic_can_be_found() -> None:
    body = (
        b"<html>\nDisallow: /\nUser-agent: (\nUser-agent: a/1\nhost: \xff\n"
        b"Disalow: /\nAllow: x\nSitemap: s\nCrawl-delay: x\nRequest-rate: x\n"
        + b"#" * 17_000
        + b"\n#"
    )

    found = _found(body, dialect=Dialect.GOOGLE, max_bytes=len(body) - 1)

    assert {kind for _, kind, _ in found} == set(DiagnosticKind)
    assert [line for line, _, _ in found] == sorted(line for line, _, _ in found)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_octets_outside_utf8_are_told_once(end: str) -> None:
    body = end.join(["# é", "#", "# \xff", "# \xff"]).encode("latin-1")
    body = body.replace(b"\xe9", "é".encode())

    ((line, kind, _),) = _found(body)

    assert (line, kind) == (3, DiagnosticKind.NOT_UTF8)


def test_replacement_character_is_utf8() -> None:
    assert _found("# �") == []


def test_octets_outside_utf8_are_told_beside_a_replacement_character() -> None:
    """A genuine U+FFFD in the line hid the octets that are none."""
    ((line, kind, _),) = _found("# �".encode() + b"\xff")

    assert (line, kind) == (1, DiagnosticKind.NOT_UTF8)


@pytest.mark.parametrize(
    ("body", "limit", "is_cut"),
    [
        pytest.param("Allow: /\n#\n", 9, True, id="a line is left out"),
        pytest.param("#\n", 2, False, id="all of it is read"),
        pytest.param("#\n", 1, True, id="the last line end is left out"),
        pytest.param("", 0, False, id="nothing to read"),
        pytest.param("#" * 600_000, None, False, id="no limit"),
    ],
)
def test_file_longer_than_its_limit_is_told(
    body: str, limit: int | None, *, is_cut: bool
) -> None:
    kinds = [(line, kind) for line, kind, _ in _found(body, max_bytes=limit)]

    assert ((0, DiagnosticKind.FILE_CUT) in kinds) is is_cut


@pytest.mark.parametrize("body", ["<html>\n", "\r\n <!DOCTYPE html>\n", "<?xml?>"])
def test_page_is_told_first(body: str) -> None:
    first, *rest = _found(body)

    assert first[:2] == (0, DiagnosticKind.LOOKS_LIKE_HTML)
    assert {kind for _, kind, _ in rest} == {DiagnosticKind.NO_COLON}


def test_overlong_line_is_told_where_it_is_cut() -> None:
    body = _GROUP + "#" * 16_663 + "\n" + "#" * 16_664

    assert _found(body) == []
    assert _found(body, dialect=Dialect.GOOGLE) == [
        (3, DiagnosticKind.LINE_CUT, "only 16663 octets count")
    ]


def test_line_with_a_nul_is_told_where_google_cuts_it() -> None:
    assert _found("#\0\r#", dialect=Dialect.GOOGLE) == [
        (1, DiagnosticKind.LINE_CUT, "only 1 octets count")
    ]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Disalow: /", "disalow"),
        ("Disallowed: /", "disallowed"),
        ("Disallow /", "Disallow"),
        ("site-map: http://h/", "site-map"),
    ],
)
def test_spelling_that_only_google_takes_is_told(line: str, key: str) -> None:
    found = _found(_GROUP + line, dialect=Dialect.GOOGLE)

    assert found == [
        (
            2,
            DiagnosticKind.MISSPELT_FIELD,
            f"only lenient crawlers understand {key!r}",
        )
    ]


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        pytest.param(
            "user-agent: b1",
            [DiagnosticKind.CUT_PRODUCT_TOKEN],
            id="digits are cut",
        ),
        pytest.param(
            "user-agent b1",
            [DiagnosticKind.MISSPELT_FIELD],
            id="no colon",
        ),
        pytest.param(
            "user-agent: \xe9",
            [DiagnosticKind.NO_PRODUCT_TOKEN],
            id="no token",
        ),
    ],
)
def test_agents_that_google_reads_otherwise_are_told(
    line: str, kinds: list[DiagnosticKind]
) -> None:
    found = _found(line, dialect=Dialect.GOOGLE)

    assert [kind for _, kind, _ in found] == kinds


@pytest.mark.parametrize(
    "body",
    [
        "",
        "# only a comment\n",
        " \t\n",
        "User-agent: *\nDisallow:\n",
        "User-agent: a\nUser-agent: b-1.0\nDisallow: /a\nAllow: *b$\n",
        "User-agent: a\nCrawl-delay: 5\nRequest-rate: 1/5\n",
        "Sitemap: https://h/s.xml\n",
        "\ufeffUser-agent: a\n",
    ],
)
def test_sound_file_has_nothing_to_tell(body: str) -> None:
    assert _found(body) == []
