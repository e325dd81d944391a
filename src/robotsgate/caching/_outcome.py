"""The outcome of a fetch, and its access result (RFC 9309 §2.3.1). Pure.

As in Google's specification, a 5xx that is really a missing page counts as a 404.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from robotsgate._public import set_module
from robotsgate.caching._policy import AccessResult
from robotsgate.robotstxt._robots_txt import has_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from robotsgate.caching._policy import Policy

_Judgement = TypeVar("_Judgement")

FTP_RETRIEVED = 226
FTP_NO_FILE = 550
"""These two FTP replies are responses (RFC 959 §4.2); all others are failures."""


@set_module("robotsgate")
class FailureKind(enum.Enum):
    """Where a fetch failed."""

    NAME_RESOLUTION = "name-resolution"
    """The host name could not be resolved."""
    CONNECT = "connect"
    """The connection failed."""
    TLS = "tls"
    """The TLS handshake failed, or the certificate is not valid for the host."""
    TIMEOUT = "timeout"
    """A timeout or the fetch's deadline was exceeded."""
    TRANSFER = "transfer"
    """The connection was lost before the end of the response."""
    PROTOCOL = "protocol"
    """The server violated HTTP, sent less data than announced, or refused FTP."""
    CODING = "coding"
    """The content coding was not requested, or the body is corrupt or truncated."""
    ADDRESS_REFUSED = "address-refused"
    """The address guard refused the address."""
    LOCAL = "local"
    """This machine could not send the request, because it had no free file descriptor,
    port, memory or thread, or the caller's client had no free connection."""
    OTHER = "other"
    """Any other failure."""


Redirects = tuple[tuple[str, int], ...]
"""Pairs (target URL, status of the redirect response), in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a fetch: the last response, or a failure without a usable one.

    Attributes:
        status: 100 to 999, including that of a redirect that was not followed; for FTP,
            the reply code, 226 or 550; `None` after a failure.
        headers: values keyed by lower-case name, including at least `CACHING_HEADERS`;
            repeated headers are joined with ", ".
        body: decoded, truncated one byte beyond the policy's limit; at most a few
            kilobytes unless the status is 2xx.
        error: what went wrong, or why the last redirect was not followed or the body is
            not a file, in words.
        has_too_many_redirects: whether that is why the last redirect was not followed;
            a loop counts as well.
        is_our_fault: whether `cause` is a bug in robotsgate, so that the failure is
            not evidence against the origin under any policy.
    """

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    redirects: Redirects = ()
    error: str | None = None
    failure: FailureKind | None = None
    has_too_many_redirects: bool = False
    is_wall: bool = False
    cause: BaseException | None = field(default=None, compare=False)
    is_our_fault: bool = False


def fault(error: Exception, redirects: Redirects) -> Outcome:
    """The outcome of a fetch if robotsgate itself raised an unexpected `error`."""
    return Outcome(
        failure=FailureKind.OTHER,
        error=f"unexpected {type(error).__name__} in robotsgate; please report it",
        redirects=redirects,
        cause=error,
        is_our_fault=True,
    )


def judge(
    outcome: Outcome, rule: Callable[[Outcome], _Judgement]
) -> tuple[_Judgement, Outcome]:
    """The result of `rule` for `outcome`, and that outcome.

    If `rule` raises, the outcome becomes a failure of this origin alone. Otherwise, a
    single response that we cannot handle would end a crawl of many origins.
    """
    try:
        return rule(outcome), outcome
    except Exception as error:  # noqa: BLE001 (a bug may raise anything)
        failure = fault(error, outcome.redirects)
        return rule(failure), failure


_NO_EVIDENCE = frozenset(
    {HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.TOO_MANY_REQUESTS}
)

# A partial response, or one from our own proxy, says nothing about the file.
_UNREACHABLE = frozenset(
    {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
)

_NONCOMMITTAL = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.RESET_CONTENT})

BYTES_TO_READ = 4_096
"""How much of an error page is examined: enough for the title and first heading."""

_PLACES = ("title", "h1")
_TAG = re.compile(r"<[^<>]*>")

# Separates a phrase, a status and a site's name.
_BETWEEN_PARTS = re.compile(
    r"[|:;,!?()/\u00ab\u00b7\u00bb\u2013\u2014\u2022]|\s-\s|\.(?=\s|$)"
)

_PHRASES = (
    "404",
    "not found",
    "not be found",
    "page doesn't exist",
    "page does not exist",
    "page no longer exists",
    "no such page",
)

# The words that may surround a phrase. Next to other words, the phrase is about
# something else: a backend, a host, a key. Google's own page ends with "!!1".
_WORDS_BESIDE = frozenset({
    "1", "404", "410", "a", "be", "can", "could", "error", "file", "http", "oops",
    "page", "requested", "sorry", "status", "that", "the", "this", "url", "was",
})  # fmt: skip

# The host label that names the site, and the rest of the host. Shorter labels mostly
# belong to a public suffix, as in "co.uk".
_SITE = re.compile(r".*[./]([^./:]{4,})(\.[^:]+)")
_SIGN = re.compile(r"[\W_]")


def access_result(
    outcome: Outcome,
    policy: Policy,
    *,
    origin: str,
    last_access: AccessResult | None = None,
) -> AccessResult:
    """The access result of `outcome` under `policy` (RFC 9309 §2.3.1).

    `last_access` is the access result of the cached response for `origin`, if any.
    """
    if outcome.failure is FailureKind.ADDRESS_REFUSED:
        return AccessResult.REFUSED
    if outcome.has_too_many_redirects:
        return policy.on_too_many_redirects
    status = outcome.status
    if status is None or status in _UNREACHABLE or outcome.is_wall:
        return AccessResult.UNREACHABLE
    if is_success(status):
        return AccessResult.SUCCESSFUL
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return policy.on_access_denied
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return policy.on_too_many_requests
    if 400 <= status <= 499 or (  # noqa: PLR2004
        status == FTP_NO_FILE and origin.startswith("ftp:")
    ):
        return AccessResult.UNAVAILABLE
    if (
        policy.detect_missing_page
        and last_access is not AccessResult.SUCCESSFUL
        and _is_missing_page(outcome, status, origin)
    ):
        return AccessResult.UNAVAILABLE
    return AccessResult.UNREACHABLE


def is_evidence(outcome: Outcome, *, counts_network: bool) -> bool:
    """Whether an UNREACHABLE fetch is evidence that the origin itself is at fault.

    Every status is evidence, except a 429, which asks for fewer requests, a 407, which
    comes from our own proxy, and that of a bot wall, which treats each visitor
    differently. A failure without a status is evidence if `counts_network` is set,
    unless it is our own fault.
    """
    if outcome.status is None:
        return counts_network and not outcome.is_our_fault
    return outcome.status not in _NO_EVIDENCE and not outcome.is_wall


def is_wall(status: int, body: bytes, policy: Policy) -> bool:
    """Whether a response is that of a bot wall: a 202 or 205 without any rules.

    RFC 9110 §15.3.3 calls a 202 noncommittal, and a 205 has no content. Walls send
    a challenge, which may quote the visitor's User-Agent line, or an empty body.
    """
    return (
        policy.detect_walls
        and status in _NONCOMMITTAL
        and not has_rules(body, max_bytes=policy.max_body_bytes)
    )


def is_success(status: int) -> bool:
    """Whether `status` is a 2xx, or the FTP reply 226."""
    return 200 <= status <= 299  # noqa: PLR2004


def is_server_error(status: int) -> bool:
    return 500 <= status <= 599  # noqa: PLR2004


def _is_missing_page(outcome: Outcome, status: int, origin: str) -> bool:
    """Whether a 5xx is really a 404, not a temporary error (503 or Retry-After)."""
    return (
        is_server_error(status)
        and status != HTTPStatus.SERVICE_UNAVAILABLE
        and "retry-after" not in outcome.headers
        and says_not_found(outcome.body, status=status, origin=origin)
    )


def says_not_found(page: bytes, *, status: int, origin: str) -> bool:
    """Whether an HTML page's title and first heading say that the page is missing.

    The title or the heading must contain a "not found" phrase. Apart from such phrases,
    both may contain only a status (`status`, 404 or 410) and the name of the site at
    `origin`, because an error page during an outage may also mention something that was
    not found.
    """
    from robotsgate.page._directives import first_element  # noqa: PLC0415 (rarely needed)

    start = page[:BYTES_TO_READ].decode("utf-8", "replace").lower()
    beside = _WORDS_BESIDE | {str(status)}
    parts = [part for place in _PLACES for part in _parts(first_element(start, place))]
    phrases = [_is_phrase(part, beside) for part in parts]
    return any(phrases) and all(
        is_phrase or beside.issuperset(part) or _names_site(part, origin)
        for part, is_phrase in zip(parts, phrases, strict=True)
    )


def _parts(element: str) -> list[list[str]]:
    from html import unescape  # noqa: PLC0415 (slow to import, and rarely needed)

    text = unescape(_TAG.sub(" ", element))
    return [part.split() for part in _BETWEEN_PARTS.split(text.replace("\u2019", "'"))]


def _is_phrase(words: list[str], beside: frozenset[str]) -> bool:
    text = f" {' '.join(words)} "
    return any(
        f" {phrase} " in text
        and beside.issuperset(text.replace(f" {phrase} ", " ").split())
        for phrase in _PHRASES
    )


def _names_site(words: list[str], origin: str) -> bool:
    """Whether `words` name the site, ignoring spaces and punctuation.

    For example, both "Example" and "example.com" name the site www.example.com.
    """
    site = _SITE.match(origin)
    name = _SIGN.sub("", "".join(words))
    return site is not None and name in {
        _SIGN.sub("", site[1]),
        _SIGN.sub("", site[1] + site[2]),
    }
