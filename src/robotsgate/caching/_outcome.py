"""How a fetch can end, and the access results that its end can mean.

Pure values. Source of the access results: RFC 9309 §2.3.1.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FTP_RETRIEVED = 226
FTP_NO_FILE = 550
"""Both replies of FTP are answers (RFC 959 §4.2); all others are failures."""


class AccessResult(enum.Enum):
    """The access results of RFC 9309 §2.3.1, and two of our own.

    Redirects (§2.3.1.2) are followed and so end in one of these.
    """

    SUCCESSFUL = "successful"
    """The file was fetched; its rules decide (§2.3.1.1)."""

    UNAVAILABLE = "unavailable"
    """There is no file; everything is allowed (§2.3.1.3)."""

    UNREACHABLE = "unreachable"
    """The server or the network failed; everything is disallowed (§2.3.1.4)."""

    RESTRICTED = "restricted"
    """The policy takes the answer for "keep out"; everything is disallowed.

    RFC 9309 does not have it. `Policy.strict()` counts 401 and 403 so, which the
    standard counts as unavailable; no other preset uses it.
    """

    REFUSED = "refused"
    """The address guard refused all addresses; everything is disallowed.

    RFC 9309 does not have it. /robots.txt itself is disallowed as well.
    """


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
