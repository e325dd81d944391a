"""Every number and choice about fetching, keeping and obeying a robots.txt. Pure.

Sources: RFC 9309 §2.3.1 and §2.4, and the editions of Google's specification.
"""

from __future__ import annotations

import enum
import ipaddress
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

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


# What a field may hold, besides a value of the type of its default. Numbers are ≥ 0.
_ABOVE_ZERO = {"lowest": math.ulp(0.0)}
_ONE_OR_MORE = {"lowest": 1}

_ALLOWED_OUTCOMES = (
    AccessResult.UNAVAILABLE,
    AccessResult.UNREACHABLE,
    AccessResult.RESTRICTED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How robots.txt files are fetched, kept and obeyed.

    All spans are seconds, and finite. An origin that nobody asks about is forgotten,
    and then counts as never seen: a file 30 days after it went stale by default, or the
    longest of `stale_window`, `outage_grace` and `unreachable_limit`. Under `LAST_COPY`
    no file is ever forgotten.
    """

    default_lifetime: float = 24 * _HOUR
    """Freshness lifetime of a 2xx or 4xx answer whose headers say nothing about it."""

    min_lifetime: float = field(default=_HOUR, metadata={"at_most": ("max_lifetime",)})
    """The shortest lifetime that headers can ask for; the default gives way to a
    shorter `max_lifetime`."""

    max_lifetime: float = 7 * _DAY
    """The longest lifetime that headers can ask for."""

    stale_window: float = 30 * _DAY
    """How long after the first failure the last good copy answers for an unreachable
    origin, which it never does if this is 0."""

    unreachable_limit: float = 30 * _DAY
    """How long an unreachable origin without a usable copy stays disallowed,
    RFC 9309 §2.3.1.4's "reasonably long period of time"."""

    unreachable_limit_without_copy: float | None = None
    """The same limit if the last answer brought no file; `None` stands for
    `unreachable_limit`."""

    outage_grace: float = 0.0
    """How long after the first failure an unreachable origin is disallowed even though
    there is a copy."""

    after_unreachable_limit: AfterUnreachableLimit = (
        AfterUnreachableLimit.ALLOW_IF_ANSWERING
    )
    """What is allowed after the limit."""

    days_of_evidence: int = field(default=5, metadata=_ONE_OR_MORE)
    """On how many different days (UTC) fetches must have failed before an unreachable
    origin is allowed; fewer are enough if the limit has fewer days."""

    retry_initial: float = field(
        default=_MINUTE,
        metadata=_ABOVE_ZERO | {"at_most": ("retry_max", "retry_after_max")},
    )
    """The pause after the first failure."""

    retry_factor: float = field(default=2.0, metadata=_ONE_OR_MORE)
    """How many times longer each pause is than the one before."""

    retry_max: float = field(default=_HOUR, metadata=_ABOVE_ZERO)
    """The longest pause; up to a tenth is added to each pause."""

    retry_initial_503: float = field(
        default=30.0, metadata=_ABOVE_ZERO | {"at_most": ("retry_max",)}
    )
    """The pause after the first failure if it was a 503, which promises to be short."""

    retry_after_max: float = field(default=24 * _HOUR, metadata=_ABOVE_ZERO)
    """The longest pause that a server can ask for by Retry-After; a Retry-After that is
    shorter than our own pause changes nothing."""

    max_redirects: int = 5
    """How many redirects a fetch follows; RFC 9309 asks for 5 or more."""

    fetch_deadline: float = field(default=30.0, metadata=_ABOVE_ZERO)
    """How long a fetch may take, with all of its redirects."""

    connect_timeout: float = field(default=10.0, metadata=_ABOVE_ZERO)
    """How long it may take to resolve a name and to connect; a TLS handshake may take
    as long again."""

    read_timeout: float = field(default=20.0, metadata=_ABOVE_ZERO)
    """How long to wait for the next bytes of a response."""

    store_timeout: float = field(default=5.0, metadata=_ABOVE_ZERO)
    """How long an operation of a store may take; after it the checker goes on without
    the store."""

    max_body_bytes: int = 512_000
    """How many decoded bytes of a robots.txt count; RFC 9309 §2.5 asks for 512,000 or
    more."""

    detect_missing_page: bool = True
    """Whether a 5xx page that says "not found" counts as a 404."""

    on_access_denied: AccessResult = AccessResult.UNAVAILABLE
    """Whether 401 and 403 count as UNAVAILABLE, UNREACHABLE or RESTRICTED."""

    on_too_many_requests: AccessResult = AccessResult.UNREACHABLE
    """Whether 429 counts as UNAVAILABLE, UNREACHABLE or RESTRICTED."""

    on_too_many_redirects: AccessResult = AccessResult.UNAVAILABLE
    """Whether more redirects than `max_redirects`, or a loop, count as UNAVAILABLE,
    UNREACHABLE or RESTRICTED."""

    address_guard: AddressGuard = AddressGuard.REDIRECTS
    """Which addresses a fetch may dial."""

    allowed_networks: Sequence[str] = ()
    """Networks that count as public for the address guard, such as "10.1.0.0/16" or
    "fd00:1::/32"."""

    def __post_init__(self) -> None:
        """Check each value.

        Raises:
            TypeError: a value has the wrong type.
            ValueError: a value is out of range, or two of them disagree, or a
                network cannot be read.
        """
        networks = _networks(self.allowed_networks)
        object.__setattr__(self, "allowed_networks", networks)
        for one in fields(self):
            _check(
                one.name,
                getattr(self, one.name),
                default=one.default,
                lowest=one.metadata.get("lowest", 0),
            )
        if self.min_lifetime == _HOUR:
            object.__setattr__(self, "min_lifetime", min(_HOUR, self.max_lifetime))
        for one in fields(self):
            low = getattr(self, one.name)
            for name in one.metadata.get("at_most", ()):
                high = getattr(self, name)
                if low > high:
                    raise ValueError(
                        f"expected {one.name} to be at most {name}, got "
                        f"{low!r} and {high!r}"
                    )

    @classmethod
    def google_today(cls) -> Policy:
        """Google's page of 2026.

        An outage allows nothing for 12 hours, then what the copy allows until day
        30. Without a copy, everything is allowed after the 12 hours if the server
        answers with a status; that includes a copy that was forgotten because nobody
        asked for 30 days after it went stale. If no answer comes, it is stricter than
        Google.
        """
        return cls(outage_grace=12 * _HOUR, unreachable_limit_without_copy=12 * _HOUR)

    @classmethod
    def google_2021(cls) -> Policy:
        """Google's specification of 2021.

        An outage allows nothing for 30 days, then what the last copy allows, which is
        never forgotten. Without a copy, everything is allowed after the 30 days.
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
        """All that is not clearly allowed is disallowed.

        An outage without a copy, or with one that was forgotten, allows nothing,
        however long it lasts.
        """
        return cls(
            after_unreachable_limit=AfterUnreachableLimit.DISALLOW,
            detect_missing_page=False,
            on_access_denied=AccessResult.RESTRICTED,
            on_too_many_redirects=AccessResult.UNREACHABLE,
        )


def _check(name: str, value: object, *, default: object, lowest: float) -> None:
    """Refuse a `value` of another type than the `default`, or a number below `lowest`.

    A float may be an int, and the default `None` stands for a float.
    """
    kind = float if default is None else type(default)
    if kind in {int, float} and (value is not None or default is not None):
        _check_number(name, value, lowest)
    if kind is not float and not isinstance(value, kind):
        raise TypeError(f"expected {name} to be of type {kind.__name__}, got {value!r}")
    if kind is AccessResult and value not in _ALLOWED_OUTCOMES:
        raise ValueError(
            f"expected {name} to be UNAVAILABLE, UNREACHABLE or RESTRICTED, got {value}"
        )


def _networks(value: object) -> tuple[str, ...]:
    """The networks of `value` in canonical form."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(
            f"expected allowed_networks to be a list or tuple, got {value!r}"
        )
    networks = []
    for text in value:
        if isinstance(text, int | bytes):  # `ip_network` takes them for an address
            raise TypeError(f"expected each network to be a str, got {text!r}")
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
        bound = "above 0" if 0 < lowest < 1 else f"of {lowest} or more"
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
