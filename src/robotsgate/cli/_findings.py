"""Lint findings for a robots.txt file and its HTTP response. A pure module."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from robotsgate.caching import Policy, freshness_lifetime
from robotsgate.robotstxt import Severity
from robotsgate.urls import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from robotsgate.robotstxt import RobotsTxt

_DAY = 86_400.0

# Yields the lifetime that the headers specify, ignoring a crawler's own limits.
_AS_ASKED = Policy(min_lifetime=0, max_lifetime=1e12, default_lifetime=_DAY)

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A single lint finding.

    Attributes:
        line: the line number, counted from 1; 0 for the whole file.
        column: where the finding starts, counted from 1; 0 for the whole line.
        severity: how serious the finding is.
        code: the kind of finding; each has a paragraph in `docs/reference/lint.md`.
        message: a human-readable sentence without a final period.
    """

    line: int
    column: int
    severity: Severity
    code: str
    message: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON-compatible types."""
        return asdict(self) | {"severity": self.severity.value}


def about_file(robots: RobotsTxt, *, most: int | None = None) -> list[Finding]:
    """The first `most` findings about a file; by default, all of them."""
    return [
        Finding(
            line=one.line,
            column=one.column,
            severity=one.severity,
            code=one.kind.value,
            message=one.message,
        )
        for one in robots.diagnostics[:most]
    ]


def about_answer(
    origin: Origin,
    *,
    status: int | None,
    headers: Mapping[str, str],
    redirects: Iterable[tuple[str, int]],
    now: float,
) -> list[Finding]:
    """The findings about the response from `origin`.

    Args:
        origin: the file's origin.
        status: the status of the last response; `None` if there was none.
        headers: the headers of the last response, keyed by lower-case name.
        redirects: (target URL, status) pairs, in order.
        now: when the response was received, in epoch seconds.
    """
    facts = [*_about_redirects(origin, redirects)]
    # FTP has different status codes, and no headers.
    if status is not None and origin.scheme != "ftp":
        facts += _about_response(status, headers, now)
    return [
        Finding(line=0, column=0, severity=severity, code=code, message=message)
        for severity, code, message in facts
    ]


def _about_redirects(
    origin: Origin, redirects: Iterable[tuple[str, int]]
) -> Iterator[tuple[Severity, str, str]]:
    for url, _ in redirects:
        host = Origin.from_url(url).host
        if host.removeprefix("www.") != origin.host.removeprefix("www."):
            message = f"a redirect leads to {host}, whose owner then controls the rules"
            yield Severity.WARNING, "foreign-redirect", message
            return


def _about_response(
    status: int, headers: Mapping[str, str], now: float
) -> Iterator[tuple[Severity, str, str]]:
    is_server_error = 500 <= status <= 599  # noqa: PLR2004
    if is_server_error or status == HTTPStatus.TOO_MANY_REQUESTS:
        message = f"status {status}: crawlers stop fetching the entire site"
        yield Severity.WARNING, "server-error", message
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        message = f"status {status}: crawlers may fetch everything"
        yield Severity.WARNING, "access-denied", message
    is_success = 200 <= status <= 299  # noqa: PLR2004
    if not is_success or status == HTTPStatus.PARTIAL_CONTENT:
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip()
    if media_type.lower() != "text/plain":
        message = f"expected the Content-Type text/plain, got {media_type[:80]!r}"
        yield Severity.WARNING, "wrong-content-type", message
    lifetime = freshness_lifetime(headers, now=now, policy=_AS_ASKED)
    if lifetime > _DAY:
        message = f"crawlers may cache the file for {lifetime / _DAY:.1f} days"
        yield Severity.WARNING, "long-caching", message
    if lifetime <= 0:
        message = "the headers do not let crawlers cache the file"
        yield Severity.NOTE, "no-caching", message


def sarif(findings: Sequence[tuple[str, Finding]], *, version: str) -> dict[str, Any]:
    """The findings as a SARIF 2.1.0 log (an OASIS standard).

    Args:
        findings: (URL or file, finding) pairs, in order.
        version: robotsgate's version.
    """
    codes = sorted({one.code for _, one in findings})
    driver = {
        "name": "robotsgate",
        "version": version,
        "rules": [{"id": code} for code in codes],
    }
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(*one) for one in findings],
            }
        ],
    }


def _result(source: str, finding: Finding) -> dict[str, Any]:
    uri = source if "://" in source else quote(source)
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        region = {"startLine": finding.line, "startColumn": max(1, finding.column)}
        place["region"] = region
    return {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }
