"""Decides which addresses each hop of a fetch may connect to.

Redirect targets and DNS answers are controlled by others, who could point them at a
service in the crawler's own network (server-side request forgery).
Pure, except for the state of one fetch.
Must never resolve names, which is `_dialling`'s job.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, assert_never

from robotsgate.caching._policy import AddressGuard
from robotsgate.urls._address_class import AddressClass, address_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._policy import Policy
    from robotsgate.urls._address_class import IPAddress, IPNetwork


class AddressRefusedError(ConnectionError):
    """The guard refused all of a host's addresses."""


class GuardRules:
    """The guard's mode, and the addresses that a policy treats as public."""

    def __init__(self, policy: Policy) -> None:
        """Use the mode and the allowed networks of `policy`."""
        self.mode = policy.address_guard
        self._allowed: list[IPNetwork] = [
            ip_network(text) for text in policy.allowed_networks
        ]

    def counts_as_public(self, address: IPAddress) -> bool:
        """Whether `address` is public or the policy treats it as public."""
        return address_class(address) is AddressClass.PUBLIC or any(
            address in network for network in self._allowed
        )


class FetchGuard:
    """The guard for one fetch; remembers whether a hop has used a public address."""

    def __init__(self, rules: GuardRules) -> None:
        """Apply `rules` to one fetch."""
        self._rules = rules
        self._was_public = False

    def permit(self, host: str, addresses: Sequence[IPAddress]) -> Sequence[IPAddress]:
        """Return the `addresses` that the next hop may connect to, in order.

        If any of them is public, the fetch is considered to have used a public address
        from then on.

        Args:
            host: the host with these addresses, for the error message.
            addresses: not empty.

        Raises:
            AddressRefusedError: all addresses are refused.
        """
        public = [one for one in addresses if self._rules.counts_as_public(one)]
        permitted = addresses if self._permits_special() else public
        if not permitted:
            refused = addresses[0]
            name = f", an address of {host}" if host != str(refused) else ""
            kind = address_class(refused).value
            raise AddressRefusedError(
                f"the address guard refused {refused} ({kind}){name}"
            )
        self._was_public |= bool(public)
        return permitted

    def check_host(self, host: str) -> None:
        """Like `permit`, but for a `host` that the caller's client connects to.

        The address is known only if `host` is an IP address or localhost. Any other
        name is considered public.

        Raises:
            AddressRefusedError: the address is refused.
        """
        address = literal_address(host)
        if address is None:
            self._was_public = True
        else:
            self.permit(host, [address])

    def _permits_special(self) -> bool:
        """Whether the next hop may use special addresses."""
        match self._rules.mode:
            case AddressGuard.OFF:
                return True
            case AddressGuard.REDIRECTS:
                return not self._was_public
            case AddressGuard.PUBLIC_ONLY:
                return False
            case _:
                assert_never(self._rules.mode)


def literal_address(host: str) -> IPAddress | None:
    """The IP address that `host` stands for; `None` if it must be resolved.

    Args:
        host: the host of an `Origin`, so IP addresses are in canonical form; brackets
            around an IPv6 address are optional.
    """
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):  # RFC 6761 §6.3
        name = "127.0.0.1"
    if not (name[-1:].isdigit() or ":" in name):  # `ip_address` would raise slowly
        return None
    try:
        return ip_address(name)
    except ValueError:
        return None
