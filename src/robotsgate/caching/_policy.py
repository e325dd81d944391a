"""All settings for fetching, caching and applying a robots.txt. Pure.

Sources: RFC 9309 §2.3.1 and §2.4, and several editions of Google's specification.
"""

import enum
import ipaddress
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from robotsgate._public import set_module

if TYPE_CHECKING:
    from datetime import timedelta

_Value = TypeVar("_Value")

_MINUTE = 60.0
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR


@set_module("robotsgate")
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


@set_module("robotsgate")
class AddressGuard(enum.Enum):
    """Which addresses a fetch may connect to.

    Special addresses are loopback, private, carrier-internal, link-local and multicast
    addresses, cloud metadata services, and any other address that is not public,
    including IPv6 addresses that embed such an address.
    """

    REDIRECTS = "redirects"
    """Refuse special addresses once the same fetch has contacted a public one."""

    PUBLIC_ONLY = "public-only"
    """Refuse all special addresses."""

    OFF = "off"
    """Permit all addresses; for closed networks."""


@set_module("robotsgate")
class AfterUnreachableLimit(enum.Enum):
    """What is allowed once an origin has been unreachable for longer than the limit.

    Elapsed time is not enough to allow anything: see `Policy.days_of_evidence`.
    """

    ALLOW_IF_ANSWERING = "allow-if-answering"
    """Everything, but only if the server still responds with a status, such as 500.

    An origin that does not respond at all stays disallowed.
    """

    ALLOW = "allow"
    """Everything, which RFC 9309 §2.3.1.4 permits (MAY)."""

    LAST_COPY = "last-copy"
    """Whatever the last good copy allows, indefinitely; without a copy, as `ALLOW`."""

    DISALLOW = "disallow"
    """Nothing, until the origin responds."""


# Bounds of a field, in addition to the type of its default. Numbers are ≥ 0.
_ABOVE_ZERO = {"lowest": math.ulp(0.0)}
_ONE_OR_MORE = {"lowest": 1}

if TYPE_CHECKING:

    class _Duration(Generic[_Value]):
        """A field that takes a timedelta as well, and returns seconds."""

        def __get__(self, policy: "Policy", kind: type["Policy"]) -> _Value: ...

        def __set__(self, policy: "Policy", value: _Value | timedelta) -> None: ...

    Seconds = _Duration[float]
    OptionalSeconds = _Duration[float | None]
else:
    Seconds, OptionalSeconds = float, float | None


def _seconds(default: float | None, **metadata: object) -> Any:  # noqa: ANN401 (as in `field`)
    return field(default=default, metadata=metadata | {"is_duration": True})


def in_seconds(value: object) -> object:
    """A `timedelta` in seconds; any other value unchanged."""
    # Not `isinstance`, because importing datetime takes a millisecond.
    total = getattr(value, "total_seconds", None)
    return total() if callable(total) and not isinstance(value, type) else value


_ALLOWED_OUTCOMES = (
    AccessResult.UNAVAILABLE,
    AccessResult.UNREACHABLE,
    AccessResult.RESTRICTED,
)


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How robots.txt files are fetched, cached and applied.

    All durations are finite and in seconds; a `timedelta` is converted. If an origin is
    not looked up, its file is eventually discarded, and the origin is then treated as
    new. This happens once the file has been stale for the longest of `stale_window`,
    `outage_grace` and `unreachable_limit`, which is 30 days by default. With
    `LAST_COPY`, files are never discarded.
    """

    default_lifetime: Seconds = _seconds(24 * _HOUR)
    """The freshness lifetime of a 2xx or 4xx response whose headers specify none."""

    min_lifetime: Seconds = _seconds(_HOUR, at_most=("max_lifetime",))
    """The shortest freshness lifetime that headers can specify; the default is lowered
    to `max_lifetime` if that is shorter."""

    max_lifetime: Seconds = _seconds(7 * _DAY)
    """The longest freshness lifetime that headers can specify."""

    stale_window: Seconds = _seconds(30 * _DAY)
    """How long after the first failure the last good copy of an unreachable origin is
    used; 0 means never."""

    unreachable_limit: Seconds = _seconds(30 * _DAY)
    """How long an unreachable origin without a usable copy stays disallowed, which is
    the "reasonably long period of time" of RFC 9309 §2.3.1.4."""

    unreachable_limit_without_copy: OptionalSeconds = _seconds(None)
    """The same limit if the last response contained no file or if there was no
    response; `None` means that `unreachable_limit` applies."""

    outage_grace: Seconds = _seconds(0.0)
    """How long after the first failure an unreachable origin stays disallowed even if
    there is a copy."""

    after_unreachable_limit: AfterUnreachableLimit = (
        AfterUnreachableLimit.ALLOW_IF_ANSWERING
    )
    """What is allowed after the limit."""

    days_of_evidence: int = field(default=5, metadata=_ONE_OR_MORE)
    """The number of different days (UTC) on which fetches must have failed before an
    unreachable origin is allowed; if the limit is shorter, fewer are enough."""

    retry_initial: Seconds = _seconds(
        _MINUTE, **_ABOVE_ZERO, at_most=("retry_max", "retry_after_max")
    )
    """The delay before the first retry."""

    retry_factor: float = field(default=2.0, metadata=_ONE_OR_MORE)
    """The factor by which the delay grows with each retry."""

    retry_max: Seconds = _seconds(_HOUR, **_ABOVE_ZERO)
    """The longest delay before a retry, to which up to 10% jitter is added."""

    retry_initial_503: Seconds = _seconds(30.0, **_ABOVE_ZERO, at_most=("retry_max",))
    """The delay before the first retry after a 503, which is usually temporary."""

    retry_after_max: Seconds = _seconds(24 * _HOUR, **_ABOVE_ZERO)
    """The longest delay that a server can request with Retry-After, which never
    shortens the delay that results from the other settings."""

    max_redirects: int = 5
    """The maximum number of redirects; RFC 9309 §2.3.1.2 recommends at least 5."""

    fetch_deadline: Seconds = _seconds(30.0, **_ABOVE_ZERO)
    """The time limit for a fetch, including all redirects."""

    connect_timeout: Seconds = _seconds(10.0, **_ABOVE_ZERO)
    """The time limit for resolving the name and connecting; the TLS handshake has its
    own limit of the same length."""

    # As in Nutch and StormCrawler. With 20 s, half as many silent hosts hold up the
    # healthy ones. With 5 s, servers that wake up slowly would look silent.
    read_timeout: Seconds = _seconds(10.0, **_ABOVE_ZERO)
    """How long to wait for the next bytes of a response."""

    store_timeout: Seconds = _seconds(5.0, **_ABOVE_ZERO)
    """The time limit for a store operation; after that, the checker continues without
    the store."""

    max_body_bytes: int = 512_000
    """How many decoded bytes of a robots.txt are read; RFC 9309 §2.5 requires at least
    512,000."""

    detect_missing_page: bool = True
    """Whether a 5xx page that says "not found" is treated as a 404."""

    detect_walls: bool = True
    """Whether a 202 or 205 without any rules is treated as unreachable, because bot
    walls send such responses."""

    on_access_denied: AccessResult = AccessResult.UNAVAILABLE
    """Whether to treat 401 and 403 as UNAVAILABLE, UNREACHABLE or RESTRICTED."""

    on_too_many_requests: AccessResult = AccessResult.UNREACHABLE
    """Whether to treat 429 as UNAVAILABLE, UNREACHABLE or RESTRICTED."""

    on_too_many_redirects: AccessResult = AccessResult.UNAVAILABLE
    """Whether to treat redirect loops, and more redirects than `max_redirects`, as
    UNAVAILABLE, UNREACHABLE or RESTRICTED."""

    address_guard: AddressGuard = AddressGuard.REDIRECTS
    """Which addresses a fetch may connect to."""

    allowed_networks: Sequence[str] = ()
    """Networks that the address guard treats as public, such as "10.1.0.0/16" or
    "fd00:1::/32"."""

    def __post_init__(self) -> None:
        """Check each value.

        Raises:
            TypeError: a value has the wrong type.
            ValueError: a value is out of range, two values contradict each other, or a
                network is invalid.
        """
        networks = _networks(self.allowed_networks)
        object.__setattr__(self, "allowed_networks", networks)
        for one in fields(self):
            value = getattr(self, one.name)
            if "is_duration" in one.metadata:
                value = in_seconds(value)
                object.__setattr__(self, one.name, value)
            _check(
                one.name,
                value,
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
    def google_today(cls) -> "Policy":
        """Google's rules as documented in 2026.

        During an outage, nothing is allowed for 12 hours, and then, until day 30,
        whatever the copy allows. Without a copy, everything is allowed after 12 hours
        if the server responds with a status. The same applies if the copy was discarded
        because the origin was not looked up for 30 days after the copy became stale. If
        there is no response at all, this policy is stricter than Google.
        """
        return cls(
            outage_grace=12 * _HOUR,
            unreachable_limit_without_copy=12 * _HOUR,
            detect_walls=False,
        )

    @classmethod
    def google_2021(cls) -> "Policy":
        """Google's specification of 2021.

        During an outage, nothing is allowed for 30 days, and then whatever the last
        copy allows. The copy is never discarded. Without a copy, everything is allowed
        after 30 days.
        """
        return cls(
            outage_grace=30 * _DAY,
            after_unreachable_limit=AfterUnreachableLimit.LAST_COPY,
            detect_walls=False,
        )

    @classmethod
    def rfc9309(cls) -> "Policy":
        """RFC 9309 §2.3.1, except that a 407 counts as unreachable.

        Outages are handled as in `google_2021`. 429 is treated like any other 4xx,
        nothing stays fresh for more than a day, and a 5xx is never treated as a 404.
        """
        return replace(
            cls.google_2021(),
            max_lifetime=24 * _HOUR,
            detect_missing_page=False,
            on_too_many_requests=AccessResult.UNAVAILABLE,
        )

    @classmethod
    def strict(cls) -> "Policy":
        """Everything that is not clearly allowed is disallowed.

        During an outage, nothing is allowed if there is no copy or the copy was
        discarded, no matter how long the outage lasts.
        """
        return cls(
            after_unreachable_limit=AfterUnreachableLimit.DISALLOW,
            detect_missing_page=False,
            on_access_denied=AccessResult.RESTRICTED,
            on_too_many_redirects=AccessResult.UNREACHABLE,
        )


def _check(name: str, value: object, *, default: object, lowest: float) -> None:
    """Reject a `value` of a different type than `default`, or a number below `lowest`.

    An int is valid as a float; a default of `None` means a float.
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
    """The networks in `value`, in canonical form."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(
            f"expected allowed_networks to be a list or tuple, got {value!r}"
        )
    networks = []
    for text in value:
        # `ip_network` would accept them as an address.
        if isinstance(text, int | bytes):
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


# The fields that affect the result of a fetch and its meaning, with their permanent
# names in a store.
_TERMS = {
    "guard": "address_guard",
    "networks": "allowed_networks",
    "redirects": "max_redirects",
    "bytes": "max_body_bytes",
    "missing": "detect_missing_page",
    "walls": "detect_walls",
    "denied": "on_access_denied",
    "many": "on_too_many_requests",
    "hops": "on_too_many_redirects",
    "limit": "after_unreachable_limit",
}
_USUAL = Policy()


def terms_of(policy: Policy) -> str:
    """The fields of `policy` that affect an entry and differ from the default.

    Empty for the default policy. Entries with other terms must not be used, not even
    their copies: a copy may come from an address that `policy` would refuse, or may
    have been truncated at a lower limit.
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
