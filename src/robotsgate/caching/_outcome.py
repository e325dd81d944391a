"""What a fetch brought, and which access result that is (RFC 9309 §2.3.1)."""

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


class FailureKind(enum.Enum):
    """Where a fetch failed."""

    NAME_RESOLUTION = "name-resolution"
    CONNECT = "connect"
    TLS = "tls"
    TIMEOUT = "timeout"
    TRANSFER = "transfer"
    """The connection broke while something was still to come."""
    PROTOCOL = "protocol"
    """What came is not HTTP, or not all that was announced."""
    CODING = "coding"
    """The content coding is unknown, chained, broken or cut off."""
    ADDRESS_REFUSED = "address-refused"
    """The address guard refused to dial."""
    POOL = "pool"
    """No connection was free in the caller's own pool, which the origin cannot help."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A final response.

    Attributes:
        status: 100 to 999.
        headers: lower-case name to value; lines of one name joined with ", ";
            at least those that matter to caching.
        body: decoded, cut one byte beyond the limit of the policy; of anything
            but a 2xx at most a few kilobytes.
        redirects: how many were followed to get here, ≥ 0.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    redirects: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRedirect:
    """A redirect that was not followed: one too many, a loop, or to nowhere.

    Attributes:
        status: of the response that was not followed; `None` where a client of
            the caller kept it to itself.
        headers: as in `Answered`.
        error: what is wrong with it, for people.
        redirects: how many were followed before it, ≥ 0.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str
    redirects: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """No usable response.

    Attributes:
        kind: where it failed.
        error: what happened, for people.
        redirects: how many were followed before, ≥ 0.
        cause: the exception behind it, for logs; not compared.
    """

    kind: FailureKind
    error: str
    redirects: int = 0
    cause: BaseException | None = field(default=None, compare=False)


Outcome = Answered | BrokenRedirect | Failed


def access_result(outcome: Outcome, policy: Policy) -> AccessResult:
    """Which access result `outcome` is under `policy` (RFC 9309 §2.3.1)."""
    match outcome:
        case Answered():
            return _access_result_of_answer(outcome, policy)
        case BrokenRedirect():
            return policy.on_broken_redirect
        case Failed():
            return AccessResult.UNREACHABLE
        case _:
            assert_never(outcome)


def is_server_error(status: int) -> bool:
    """Whether `status` is a 5xx."""
    return 500 <= status <= 599  # noqa: PLR2004


def _access_result_of_answer(answer: Answered, policy: Policy) -> AccessResult:
    status = answer.status
    if 200 <= status <= 299:  # noqa: PLR2004
        return AccessResult.SUCCESSFUL
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return policy.on_access_denied
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return policy.on_too_many_requests
    if 400 <= status <= 499:  # noqa: PLR2004
        return AccessResult.UNAVAILABLE
    if is_server_error(status):
        is_missing = policy.detect_missing_page and says_not_found(answer.body)
        return AccessResult.UNAVAILABLE if is_missing else AccessResult.UNREACHABLE
    return AccessResult.UNREACHABLE
