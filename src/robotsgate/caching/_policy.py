"""Every number and choice about fetching, keeping and obeying a robots.txt.

Sources: RFC 9309 §2.3.1 and §2.4, Google's specification in its editions.
"""

from __future__ import annotations

import enum
import ipaddress
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from robotsgate.caching._access import AccessResult

_MINUTE = 60.0
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


class AddressGuard(enum.Enum):
    """Which addresses a fetch may dial.

    Special addresses are those of loopback, private and provider-internal
    networks, link-local ones, cloud metadata services, multicast, and whatever
    else is not public; also inside the IPv6 addresses that embed them.
    """

    REDIRECTS = "redirects"
    """No special address once a hop of the fetch has been at a public one."""

    PUBLIC_ONLY = "public-only"
    """No special address at all."""

    OFF = "off"
    """Any address is dialled; for closed networks, where nobody can be harmed."""


class AfterUnreachableLimit(enum.Enum):
    """What an origin gets that is unreachable for longer than the policy's limit.

    No member opens a door by the mere passing of time: see `Policy.days_of_evidence`.
    """

    ALLOW_IF_ANSWERING = "allow-if-answering"
    """As if there were no file, but only while the server answers with a status.

    A 5xx is enough. An origin that cannot be reached at all stays disallowed.
    """

    ALLOW = "allow"
    """As if there were no file; a MAY of RFC 9309 §2.3.1.4."""

    LAST_COPY = "last-copy"
    """The last good copy for as long as it takes; without one, as `ALLOW`."""

    DISALLOW = "disallow"
    """Nothing, until the origin answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How robots.txt files are fetched, kept and obeyed.

    All spans are seconds, finite and ≥ 0; time-outs are > 0.

    Attributes:
        default_lifetime: freshness lifetime of a 2xx or 4xx answer whose headers
            say nothing about it.
        min_lifetime: the shortest lifetime that headers can ask for.
        max_lifetime: the longest one.
        stale_window: how long after the first failure the last good copy
            answers for an unreachable origin; 0: never.
        unreachable_limit: how long an unreachable origin without a copy to use
            stays disallowed, RFC 9309 §2.3.1.4's "reasonably long period of time".
        unreachable_limit_without_copy: the same for an origin whose last answer
            brought no file; `None`: as `unreachable_limit`.
        outage_grace: how long after the first failure an unreachable origin is
            disallowed even though there is a copy.
        after_unreachable_limit: what an unreachable origin gets then.
        days_of_evidence: on how many different days (UTC) fetches must have failed
            before an unreachable origin is allowed, ≥ 1; at most one for each day
            of the limit.
        retry_initial: span before an unreachable origin is fetched again, > 0.
        retry_factor: what each further failure multiplies it by, ≥ 1.
        retry_max: its upper bound.
        retry_initial_503: as `retry_initial`, after a 503, which says "soon".
        retry_after_max: the longest Retry-After that is obeyed; a shorter one than
            our own back-off changes nothing.
        max_redirects: how many redirects are followed, 5 or more for RFC 9309.
        fetch_deadline: for a whole fetch with all of its redirects.
        connect_timeout: for finding an address and connecting, and once more for
            a TLS handshake.
        read_timeout: for the next bytes of a response.
        store_timeout: for each operation of a store; after it the checker goes on
            without the store.
        max_body_bytes: how much of a robots.txt counts, decoded; 512,000 or more
            for RFC 9309 §2.5.
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
                network is none.
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
        """Google's page of 2026: 12 hours of stop, then the copy until day 30.

        Without a copy, everything is allowed after the 12 hours if the server
        answers. Stricter than Google only where nothing answers.
        """
        return cls(outage_grace=12 * _HOUR, unreachable_limit_without_copy=12 * _HOUR)

    @classmethod
    def google_2021(cls) -> Policy:
        """Google's specification of 2021: 30 days of stop, then the last copy.

        Without a copy, everything is allowed after the 30 days.
        """
        return cls(
            outage_grace=30 * _DAY,
            after_unreachable_limit=AfterUnreachableLimit.LAST_COPY,
        )

    @classmethod
    def rfc9309(cls) -> Policy:
        """The letter of RFC 9309 §2.3.1.

        An outage as in `google_2021`; 429 is a 4xx as any other, lifetimes are a
        day at most, and no error page is read.
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


# The lowest value of each number; a bound that must itself not be reached is
# written as the smallest float above it.
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
        raise TypeError(f"expected allowed_networks as several networks, got {value!r}")
    networks = []
    for text in value:
        if isinstance(text, int | bytes):  # which `ip_network` would take for one
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
    except OverflowError:  # an int beyond the floats
        is_finite = False
    if not (is_finite and value >= lowest):
        bound = "above 0" if lowest == _ABOVE_ZERO else f"of {lowest} or more"
        raise ValueError(
            f"expected {name} to be a finite number {bound}, got {value!r}"
        )
