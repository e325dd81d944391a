"""Tells which host a URL belongs to, and at what pace that host may be asked."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.politeness._events import DelayClamped
from robotsgate.politeness._schedule import pace_of, stated_delay

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.checking._gated import Leave
    from robotsgate.checking._reporting import Listener
    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._schedule import Pace
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.urls._origin import URLLike

_Stated = tuple[float | None, "RequestRate | None"]
_NOTHING: _Stated = (None, None)


# Most hosts that ask for a delay have one origin and one of a few delays, so equal ones
# are one object.
_SHARED_HOSTS = 1_000

# How many origins of a host are remembered: `host_of` may put thousands together.
_MOST_ORIGINS = 20


class _Host(NamedTuple):
    """A host with an origin that asks for a delay.

    Attributes:
        pace: that of all its origins together.
        stated: pairs (key of an origin without the name of the host, what the origin
            asks for); if there are many, those with the longest delays.
    """

    pace: Pace
    stated: tuple[tuple[str, _Stated], ...]


class Hosts:
    """The hosts of one gate.

    Only hosts that ask for a delay are remembered.

    Attributes:
        max_turn_seconds: the age at which a turn counts as ended.
    """

    def __init__(
        self,
        listener: Listener[GateEvent],
        *,
        host_of: Callable[[str], str] | None,
        default_delay: float,
        max_delay: float,
        max_at_once: int,
        max_turn_seconds: float,
        max_hosts: int,
    ) -> None:
        """Remember no host yet.

        Args:
            listener: is told of delays that are too long.
            host_of: names the host of a URL; `None`: the host name in it.
            default_delay: seconds, the least delay.
            max_delay: seconds, the largest delay.
            max_at_once: turns of a host that states no crawl-delay.
            max_turn_seconds: the age at which a turn counts as ended.
            max_hosts: how many are remembered, ≥ 1.
        """
        self._listener = listener
        self._host_of = host_of
        self._default_delay = default_delay
        self._max_delay = max_delay
        self._max_at_once = max_at_once
        self.max_turn_seconds = max_turn_seconds
        self._max_hosts = max_hosts
        self._hosts: dict[str, _Host] = {}
        self._host_with = lru_cache(_SHARED_HOSTS)(self._new_host)
        self._usual = self._new_host(()).pace

    def host(self, url: str | URLLike, origin: str) -> str:
        """The host of `url`, whose origin has the key `origin`.

        Raises:
            TypeError: `host_of` does not return a name.
        """
        if self._host_of is None:
            address = origin[origin.index("/") + 2 :]
            name, colon, port = address.rpartition(":")
            return name if colon and port[-1] != "]" else address
        host: object = self._host_of(str(url))
        if not isinstance(host, str) or not host:
            raise TypeError(f"expected the name of a host from host_of, got {host!r}")
        return host

    def pace(self, host: str) -> Pace:
        """The pace of `host`, as far as its origins are known."""
        known = self._hosts.get(host)
        return self._usual if known is None else known.pace

    def learn(self, host: str, leave: Leave) -> None:
        """Remember what the robots.txt of one more origin of `host` asks for."""
        rules = leave.rules.agent_rules
        stated = (rules.crawl_delay, rules.request_rate)
        known = self._hosts.get(host)
        if known is None and stated == _NOTHING:
            return
        origins = {} if known is None else dict(known.stated)
        origin = leave.origin.removesuffix(host)
        if stated == origins.get(origin, _NOTHING):
            return
        origins[origin] = stated
        if len(origins) > _MOST_ORIGINS:
            del origins[min(origins, key=lambda key: stated_delay(*origins[key]) or 0)]
        if known is None and len(self._hosts) >= self._max_hosts:
            del self._hosts[next(iter(self._hosts))]  # its next turn learns that again
        self._hosts[host] = self._host_with(tuple(origins.items()))
        seconds = stated_delay(*stated) or 0.0
        if seconds > self._max_delay:
            self._listener.tell(
                DelayClamped(
                    host=host,
                    origin=leave.origin,
                    stated_delay=seconds,
                    delay=self._max_delay,
                )
            )

    def _new_host(self, stated: tuple[tuple[str, _Stated], ...]) -> _Host:
        pace = pace_of(
            (delays for _, delays in stated),
            default_delay=self._default_delay,
            max_delay=self._max_delay,
            max_at_once=self._max_at_once,
            max_turn_seconds=self.max_turn_seconds,
        )
        return _Host(pace, stated)
