"""One GET of a fetch, and the ways to send it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._address_guard import FetchGuard
    from robotsgate.fetching._fetcher import FetchedResponse
    from robotsgate.urls._origin import Origin


@dataclass(slots=True, kw_only=True)
class Hop:
    """One GET of a fetch.

    Attributes:
        origin: where it goes.
        target: path and query as they are sent, ASCII.
        headers: pairs (name, value) to send, without Host.
        guard: which addresses may be dialled.
        policy: timeouts and sizes.
    """

    origin: Origin
    target: str
    headers: Sequence[tuple[str, str]]
    guard: FetchGuard
    policy: Policy

    @property
    def url(self) -> str:
        """The whole URL."""
        return f"{self.origin}{self.target}"

    @property
    def host(self) -> str:
        """The value of the Host header."""
        return str(self.origin).partition("//")[2]


class Exchange(Protocol):
    """A way to send GETs."""

    is_blind: bool
    """Whether it dials addresses that the guard does not see.

    The guard always sees an address that stands in a URL.
    """

    async def get(self, hop: Hop) -> FetchedResponse:
        """Send a GET without cookies and credentials.

        Reads as much of the body as matters with that status.

        Raises:
            AddressRefusedError: the guard refuses the address of the host. May be the
                cause of another exception.
        """
        ...
