"""Decides which access result the outcome of a fetch is (RFC 9309 §2.3.1). Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, assert_never

from robotsgate.caching._access import AccessResult
from robotsgate.caching._missing_page import says_not_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._policy import Policy


FTP_RETRIEVED = 226
FTP_NO_FILE = 550
"""Both replies of FTP are answers (RFC 959 §4.2); all others are failures."""


class FailureKind(enum.Enum):
    """Where a fetch failed."""

    NAME_RESOLUTION = "name-resolution"
    """The name of the host has no address."""
    CONNECT = "connect"
    """No connection was made."""
    TLS = "tls"
    """The TLS handshake failed, or the certificate is not valid for the host."""
    TIMEOUT = "timeout"
    """A timeout or the deadline of the fetch passed."""
    TRANSFER = "transfer"
    """The connection broke before the end of the response."""
    PROTOCOL = "protocol"
    """The server did not speak HTTP, sent less than it announced, or refused FTP."""
    CODING = "coding"
    """The content coding is unknown, chained, broken or cut off."""
    ADDRESS_REFUSED = "address-refused"
    """The address guard refused the address."""
    POOL = "pool"
    """No connection was free in the pool of the caller's own client."""
    OTHER = "other"
    """None of these."""


Redirects = tuple[tuple[str, int], ...]
"""Pairs (URL that was followed, status of the response that led there), in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The last response of a fetch.

    Attributes:
        status: 100 to 999; that of a redirect if its Location cannot be followed;
            for FTP the reply code, 226 or 550.
        headers: lower-case name to value; lines of one name joined with ", ";
            at least `CACHING_HEADERS`.
        body: decoded, cut one byte beyond the limit of the policy; at most a few
            kilobytes unless the status is 2xx.
        redirects: those that were followed before.
        error: why a redirect was not followed, for people; `None` if none was left.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    redirects: Redirects = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TooManyRedirects:
    """More redirects than the policy follows, or a loop.

    Attributes:
        status: that of the response that was not followed; `None` if a client of the
            caller did not tell it.
        headers: as in `Answered`.
        error: what is wrong, for people.
        redirects: those that were followed before it.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str
    redirects: Redirects = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """No usable response.

    Attributes:
        kind: where it failed.
        error: what happened, for people.
        redirects: those that were followed before.
        cause: the exception behind it, for logs; not compared.
    """

    kind: FailureKind
    error: str
    redirects: Redirects = ()
    cause: BaseException | None = field(default=None, compare=False)


Outcome = Answered | TooManyRedirects | Failed


def access_result(
    outcome: Outcome,
    policy: Policy,
    *,
    origin: str,
    last_access: AccessResult | None = None,
) -> AccessResult:
    """Which access result `outcome` is under `policy` (RFC 9309 §2.3.1).

    Args:
        outcome: how the fetch ended.
        policy: the choices.
        origin: scheme, host and port that were asked.
        last_access: of the last answer that is kept; `None` if there is none.
    """
    match outcome:
        case Answered():
            return _access_result_of_answer(
                outcome, policy, origin=origin, last_access=last_access
            )
        case TooManyRedirects():
            return policy.on_too_many_redirects
        case Failed():
            is_refused = outcome.kind is FailureKind.ADDRESS_REFUSED
            return AccessResult.REFUSED if is_refused else AccessResult.UNREACHABLE
        case _:
            assert_never(outcome)


def is_evidence(outcome: Outcome, *, counts_network: bool) -> bool:
    """Whether a failed fetch shows that the origin itself is at fault.

    Each status does, except 429, which asks for fewer requests, and 407, which our own
    proxy sends.

    Args:
        outcome: one whose access result is UNREACHABLE.
        counts_network: whether a failure without a status does, too.
    """
    status = None if isinstance(outcome, Failed) else outcome.status
    if status is None:
        return counts_network
    return status not in _NO_EVIDENCE


def is_server_error(status: int) -> bool:
    """Whether `status` is a 5xx."""
    return 500 <= status <= 599  # noqa: PLR2004


_NO_EVIDENCE = frozenset(
    {HTTPStatus.PROXY_AUTHENTICATION_REQUIRED, HTTPStatus.TOO_MANY_REQUESTS}
)

# An incomplete answer and one of our own proxy say nothing about the file.
_UNREACHABLE = frozenset(
    {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
)


def _access_result_of_answer(
    answer: Answered,
    policy: Policy,
    *,
    origin: str,
    last_access: AccessResult | None,
) -> AccessResult:
    status = answer.status
    if status == FTP_NO_FILE and origin.startswith("ftp:"):
        return AccessResult.UNAVAILABLE
    if status in _UNREACHABLE:
        return AccessResult.UNREACHABLE
    if 200 <= status <= 299:  # noqa: PLR2004
        return AccessResult.SUCCESSFUL
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return policy.on_access_denied
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return policy.on_too_many_requests
    if 400 <= status <= 499 or (  # noqa: PLR2004
        policy.detect_missing_page
        and last_access is not AccessResult.SUCCESSFUL
        and _is_missing_page(answer, origin)
    ):
        return AccessResult.UNAVAILABLE
    return AccessResult.UNREACHABLE


def _is_missing_page(answer: Answered, origin: str) -> bool:
    """Whether a 5xx is really a 404: 503 and Retry-After promise a file later."""
    return (
        is_server_error(answer.status)
        and answer.status != HTTPStatus.SERVICE_UNAVAILABLE
        and "retry-after" not in answer.headers
        and says_not_found(answer.body, status=answer.status, origin=origin)
    )
