"""Keep robotsgate out of networks that a public site's redirect should not reach.

Starts two small servers on this machine. One, at 127.0.0.1, plays a public site whose
robots.txt redirects to the other, an internal service at 127.0.0.2:

    python examples/closed_network.py

Needs a system where all of 127.0.0.0/8 leads to the local machine, such as Linux.
"""

from __future__ import annotations

import anyio
from example_site import serving

from robotsgate import AddressGuard, Policy, RobotsChecker

AGENT = "ExampleBot"

POLICIES = {
    "the public web only": Policy(
        address_guard=AddressGuard.PUBLIC_ONLY,
        # Lets 127.0.0.1 play the public web here.
        allowed_networks=["127.0.0.1/32"],
    ),
    "the public web and the network of the service": Policy(
        address_guard=AddressGuard.PUBLIC_ONLY, allowed_networks=["127.0.0.0/8"]
    ),
    "a closed network, no guard": Policy(address_guard=AddressGuard.OFF),
}


async def main() -> None:
    """Check the same URL under each policy."""
    with (
        serving({"/admin": ""}, host="127.0.0.2") as service,
        serving({"/robots.txt": (302, f"{service}/admin")}) as site,
    ):
        for name, policy in POLICIES.items():
            print(f"{name}:")
            async with RobotsChecker(user_agent=AGENT, policy=policy) as checker:
                verdict = await checker.check(AGENT, f"{site}/page")
            print(f"    {verdict}")


if __name__ == "__main__":
    anyio.run(main)
