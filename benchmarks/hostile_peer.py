"""Lets one peer read one hostile file once: whoever calls may lose patience.

    python -m benchmarks.hostile_peer PEER FAMILY

Prints the seconds that it took as JSON, or the name of what the peer raised.
"""

from __future__ import annotations

import asyncio
import json
import sys

from benchmarks.hostile_files import FAMILIES
from benchmarks.peers import installed_peers
from benchmarks.timing import seconds_of

__all__ = ["main"]


def main() -> None:
    """Read the family that the command line names."""
    key, name = sys.argv[1:]
    peer = installed_peers()[key]
    (family,) = (family for family in FAMILIES if family.name == name)
    body = family.body()
    url = f"https://www.example.com{family.path}"

    async def read() -> None:
        peer.answer(peer.prepared(body), url)

    try:
        found: float | str = asyncio.run(seconds_of(read()))
    except Exception as error:  # noqa: BLE001 (whatever a peer makes of such a file)
        found = type(error).__name__
    print(json.dumps(found))


if __name__ == "__main__":
    main()
