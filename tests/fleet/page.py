"""The sites of the fleet tests: their robots.txt and the expected answers.

Each site has its own loopback address, and all use one port. Site n disallows
/page-0 … /page-5, except for the page whose number is n modulo 6.
"""

from __future__ import annotations

PAGES = 6

_HOSTS_PER_NETWORK = 250


def host_of(site: int) -> str:
    """The address of `site`, which is 0 or more."""
    return f"127.0.{site // _HOSTS_PER_NETWORK + 1}.{site % _HOSTS_PER_NETWORK + 1}"


def number_of(host: str) -> int:
    """The site at the address `host`."""
    network, address = host.split(".")[2:]
    return (int(network) - 1) * _HOSTS_PER_NETWORK + int(address) - 1


def robots_txt(site: int) -> bytes:
    """The robots.txt of `site`."""
    rules = [f"Disallow: /page-{n}\n" for n in range(PAGES) if n != site % PAGES]
    return "".join(["User-agent: *\n", *rules]).encode()


def expected(site: int, page: int) -> bool:
    """Whether `page` of `site` may be fetched."""
    return page == site % PAGES
