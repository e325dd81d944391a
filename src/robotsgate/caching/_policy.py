"""Every number and choice about fetching, keeping and obeying a robots.txt. Pure.

Sources: RFC 9309 §2.3.1 and §2.4, and the editions of Google's specification.
"""

from __future__ import annotations

import enum
import ipaddress
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from robotsgate.caching._outcome import AccessResult

_MINUTE = 60.0
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


class AddressGuard(enum.Enum):
    """Which addresses a fetch may dial.

    Special addresses are those of loopback, of private, provider-internal and
    link-local networks, of cloud metadata services, of multicast, and all others
    that are not public. An IPv6 address that embeds one of them is special too.
    """

    REDIRECTS = "redirects"
    """No special address after a hop of the same fetch to a public one."""

    PUBLIC_ONLY = "public-only"
    """No special address at all."""

    OFF = "off"
    """Fetches may dial any address; for closed networks."""


class AfterUnreachableLimit(enum.Enum):
    """What is allowed when an origin is unreachable for longer than the limit.

    Time alone opens nothing: see `Policy.days_of_evidence`.
    """

    ALLOW_IF_ANSWERING = "allow-if-answering"
    """Everything, but only while the server answers with a status, such as 500.

    An origin that sends no answer at all stays disallowed.
    """

    ALLOW = "allow"
    """Everything; a MAY of RFC 9309 §2.3.1.4."""

    LAST_COPY = "last-copy"
    """What the last good copy allows, without an end; without a copy, as `ALLOW`."""

    DISALLOW = "disallow"
    """Nothing, until the origin answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How robots.txt files are fetched, kept and obeyed.

    All spans are seconds, finite and ≥ 0; timeouts are > 0.

    Attributes:
        default_lifetime: freshness lifetime of a 2xx or 4xx answer whose headers
            say nothing about it.
        min_lifetime: the shortest lifetime that headers can ask for.
        max_lifetime: the longest lifetime that headers can ask for.
        stale_window: how long after the first failure the last good copy
            answers for an unreachable origin; 0: never.
        unreachable_limit: how long an unreachable origin without a usable copy
            stays disallowed, RFC 9309 §2.3.1.4's "reasonably long period of time".
        unreachable_limit_without_copy: the same limit if the last answer brought
            no file; `None`: as `unreachable_limit`.
        outage_grace: how long after the first failure an unreachable origin is
            disallowed even though there is a copy.
        after_unreachable_limit: what is allowed after the limit.
        days_of_evidence: on how many different days (UTC) fetches must have failed
            before an unreachable origin is allowed, ≥ 1; fewer are enough if the
            limit has fewer days.
        retry_initial: the pause after the first failure, > 0.
        retry_factor: how many times longer each pause is than the one before, ≥ 1.
        retry_max: the longest pause, > 0; up to a tenth is added to each pause.
        retry_initial_503: the pause after the first failure if it was a 503, which
            promises to be short, > 0.
        retry_after_max: the longest pause that a server can ask for by Retry-After,
            > 0; a Retry-After that is shorter than our own pause changes nothing.
        max_redirects: how many redirects a fetch follows; RFC 9309 asks for 5 or
            more.
        fetch_deadline: how long a fetch may take, with all of its redirects.
        connect_timeout: how long it may take to resolve a name and to connect; a TLS
            handshake may take as long again.
        read_timeout: how long to wait for the next bytes of a response.
        store_timeout: how long an operation of a store may take; after it the
            checker goes on without the store.
        max_body_bytes: how many decoded bytes of a robots.txt count; RFC 9309 §2.5
            asks for 512,000 or more.
        detect_missing_page: whether a 5xx page that says "not found" counts as
            a 404.
        on_access_denied: what 401 and 403 count as.
        on_too_many_requests: what 429 counts as.
        on_too_many_redirects: what more redirects than `max_redirects`, or a loop,
            count as.
        address_guard: which addresses a fetch may dial.
        allowed_networks: networks that count as public for the address guard,
            such as "10.1.0.0/16" or "fd00:1::/32"; may be empty.
    """

    default_lifetime: float = 24 * _HOUR
    min_lifetime: float = _MINUTE
    max_lifetime: float = 7 * _DAY
    stale_window: float = 30 * _DAY
    unreachable_limit: float = 30 * _DAY
    unreachable_limit_without_copy: float | None = None
    outage_grace: float = 0.0
    after_unreachable_limit: AfterUnreachableLimit = (
        AfterUnreachableLimit.ALLOW_IF_ANSWERING
    )
    days_of_evidence: int = 5
    retry_initial: float = _MINUTE
    retry_factor: float = 2.0
    retry_max: float = _HOUR
    retry_initial_503: float = 30.0
    retry_after_max: float = 24 * _HOUR
    max_redirects: int = 5
    fetch_deadline: float = 30.0
    connect_timeout: float = 10.0
    read_timeout: float = 20.0
    store_timeout: float = 5.0
    max_body_bytes: int = 512_000
    detect_missing_page: bool = True
    on_access_denied: AccessResult = AccessResult.UNAVAILABLE
    on_too_many_requests: AccessResult = AccessResult.UNREACHABLE
    on_too_many_redirects: AccessResult = AccessResult.UNAVAILABLE
    address_guard: AddressGuard = AddressGuard.REDIRECTS
    allowed_networks: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check each value.

        Raises:
            TypeError: a value has the wrong type.
            ValueError: a value is out of range, or two of them disagree, or a
                network cannot be read.
        """
        networks = _networks(self.allowed_networks)
        object.__setattr__(self, "allowed_networks", networks)
        for name, lowest in _LOWEST.items():
            value = getattr(self, name)
            if value is not None or name != "unreachable_limit_without_copy":
                _check_number(name, value, lowest)
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"expected {name} to be of {kind.__name__}, got {value!r}"
                )
        for name in _OUTCOMES:
            if getattr(self, name) not in _ALLOWED_OUTCOMES:
                raise ValueError(
                    f"expected {name} to be UNAVAILABLE, UNREACHABLE or RESTRICTED,"
                    f" got {getattr(self, name)}"
                )
        for low, high in _ORDERED:
            if getattr(self, low) > getattr(self, high):
                raise ValueError(
                    f"expected {low} to be at most {high}, got "
                    f"{getattr(self, low)!r} and {getattr(self, high)!r}"
                )

    @classmethod
    def google_today(cls) -> Policy:
        """Google's page of 2026.

        An outage allows nothing for 12 hours, then what the copy allows until day
        30. Without a copy, everything is allowed after the 12 hours if the server
        answers with a status. If no answer comes, it is stricter than Google.
        """
        return cls(outage_grace=12 * _HOUR, unreachable_limit_without_copy=12 * _HOUR)

    @classmethod
    def google_2021(cls) -> Policy:
        """Google's specification of 2021.

        An outage allows nothing for 30 days, then what the last copy allows.
        Without a copy, everything is allowed after the 30 days.
        """
        return cls(
            outage_grace=30 * _DAY,
            after_unreachable_limit=AfterUnreachableLimit.LAST_COPY,
        )

    @classmethod
    def rfc9309(cls) -> Policy:
        """The letter of RFC 9309 §2.3.1.

        An outage is as in `google_2021`; 429 counts as any other 4xx, nothing is
        fresh for more than a day, and a 5xx never counts as a 404.
        """
        return replace(
            cls.google_2021(),
            max_lifetime=24 * _HOUR,
            detect_missing_page=False,
            on_too_many_requests=AccessResult.UNAVAILABLE,
        )

    @classmethod
    def strict(cls) -> Policy:
        """All that is not clearly allowed is disallowed."""
        return cls(
            after_unreachable_limit=AfterUnreachableLimit.DISALLOW,
            detect_missing_page=False,
            on_access_denied=AccessResult.RESTRICTED,
            on_too_many_redirects=AccessResult.UNREACHABLE,
        )


# The lowest value of each number. "> 0" is written as the smallest float above 0.
_ABOVE_ZERO = math.ulp(0.0)
_LOWEST = {
    "default_lifetime": 0,
    "min_lifetime": 0,
    "max_lifetime": 0,
    "stale_window": 0,
    "unreachable_limit": 0,
    "unreachable_limit_without_copy": 0,
    "days_of_evidence": 1,
    "outage_grace": 0,
    "retry_initial": _ABOVE_ZERO,
    "retry_factor": 1,
    "retry_max": _ABOVE_ZERO,
    "retry_initial_503": _ABOVE_ZERO,
    "retry_after_max": _ABOVE_ZERO,
    "max_redirects": 0,
    "fetch_deadline": _ABOVE_ZERO,
    "connect_timeout": _ABOVE_ZERO,
    "read_timeout": _ABOVE_ZERO,
    "store_timeout": _ABOVE_ZERO,
    "max_body_bytes": 0,
}
_OUTCOMES = ("on_access_denied", "on_too_many_requests", "on_too_many_redirects")
_ALLOWED_OUTCOMES = (
    AccessResult.UNAVAILABLE,
    AccessResult.UNREACHABLE,
    AccessResult.RESTRICTED,
)
_KINDS: dict[str, type] = {
    "address_guard": AddressGuard,
    "after_unreachable_limit": AfterUnreachableLimit,
    "days_of_evidence": int,
    "max_redirects": int,
    "max_body_bytes": int,
    "detect_missing_page": bool,
} | dict.fromkeys(_OUTCOMES, AccessResult)
_ORDERED = (
    ("min_lifetime", "max_lifetime"),
    ("retry_initial", "retry_max"),
    ("retry_initial_503", "retry_max"),
    ("retry_initial", "retry_after_max"),
)


def _networks(value: object) -> tuple[str, ...]:
    """The networks of `value` in canonical form."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"expected allowed_networks as a list or tuple, got {value!r}")
    networks = []
    for text in value:
        if isinstance(text, int | bytes):  # `ip_network` takes them for an address
            raise TypeError(f"expected a network as str, got {text!r}")
        try:
            networks.append(str(ipaddress.ip_network(text)))
        except ValueError as error:
            raise ValueError(
                f"expected a network such as '10.0.0.0/8', got {text!r}: {error}"
            ) from error
    return tuple(networks)


def _check_number(name: str, value: object, lowest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected {name} to be a number, got {value!r}")
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # an int that is too large for a float
        is_finite = False
    if not (is_finite and value >= lowest):
        bound = "above 0" if lowest == _ABOVE_ZERO else f"of {lowest} or more"
        raise ValueError(
            f"expected {name} to be a finite number {bound}, got {value!r}"
        )


# The fields that decide what a fetch can bring and what it means, with the names
# that they have in a store for ever.
_TERMS = {
    "guard": "address_guard",
    "networks": "allowed_networks",
    "redirects": "max_redirects",
    "bytes": "max_body_bytes",
    "missing": "detect_missing_page",
    "denied": "on_access_denied",
    "many": "on_too_many_requests",
    "hops": "on_too_many_redirects",
    "limit": "after_unreachable_limit",
}
_USUAL = Policy()


def terms_of(policy: Policy) -> str:
    """The fields of `policy` that an entry depends on and that are not the default.

    Empty for the default policy. Entries of other terms must not be used, not even
    their copies: a copy may come from an address that `policy` would not dial, or may
    have been cut at a smaller limit.
    """
    return " ".join(
        f"{term}={_text(getattr(policy, name))}"
        for term, name in _TERMS.items()
        if getattr(policy, name) != getattr(_USUAL, name)
    )


def _text(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return ",".join(value) if isinstance(value, tuple) else str(value)
