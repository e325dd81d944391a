"""The outcome of a fetch, and the access results that it can lead to.

Pure values. The access results come from RFC 9309 §2.3.1.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Judgement = TypeVar("_Judgement")

FTP_RETRIEVED = 226
FTP_NO_FILE = 550
"""These two FTP replies are responses (RFC 959 §4.2); all others are failures."""


class AccessResult(enum.Enum):
    """The access results of RFC 9309 §2.3.1, plus two of our own.

    Redirects (§2.3.1.2) are followed, so they are not access results themselves.
    """

    SUCCESSFUL = "successful"
    """The file was fetched; its rules apply (§2.3.1.1)."""

    UNAVAILABLE = "unavailable"
    """There is no file; everything is allowed (§2.3.1.3)."""

    UNREACHABLE = "unreachable"
    """The server or the network failed; everything is disallowed (§2.3.1.4)."""

    RESTRICTED = "restricted"
    """The policy treats the response as "keep out"; everything is disallowed.

    This is not part of RFC 9309. `Policy.strict()` uses it for 401 and 403, which the
    standard treats as unavailable; no other preset does.
    """

    REFUSED = "refused"
    """The address guard refused all addresses; everything is disallowed.

    This is not part of RFC 9309. Even /robots.txt itself is disallowed.
    """


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
        status: 100 to 999; the status of a redirect if it was not followed; for FTP,
            the reply code, 226 or 550; `None` after a failure.
        headers: values keyed by lower-case name, including at least `CACHING_HEADERS`;
            repeated headers are joined with ", ".
        body: decoded, truncated one byte beyond the policy's limit; at most a few
            kilobytes unless the status is 2xx.
        redirects: the redirects that were followed.
        error: a human-readable description of what went wrong, or why the last redirect
            was not followed or the body is not a file; `None` if there is none.
        failure: where the fetch failed; `None` if there was a response.
        has_too_many_redirects: whether there were more redirects than the policy
            allows, or a redirect loop.
        is_wall: whether the response is that of a bot wall, not a file.
        cause: the exception behind a failure, for logs; ignored in comparisons.
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
