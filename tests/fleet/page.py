"""The sites of a fleet's test: what each says, and what is right to answer.

Each is a loopback address of its own, all of them on one port. Site n disallows
/page-0 … /page-5 but for the one whose number is n modulo 6.
"""

from __future__ import annotations

PAGES = 6

_HOSTS_OF_A_NETWORK = 250


def host_of(site: int) -> str:
    """The address of a site, 0 or more."""
    return f"127.0.{site // _HOSTS_OF_A_NETWORK + 1}.{site % _HOSTS_OF_A_NETWORK + 1}"


def number_of(host: str) -> int:
    """The site at this address."""
    network, address = host.split(".")[2:]
    return (int(network) - 1) * _HOSTS_OF_A_NETWORK + int(address) - 1


def robots_txt(site: int) -> bytes:
    """The file of a site."""
    closed = [f"Disallow: /page-{n}\n" for n in range(PAGES) if n != site % PAGES]
    return "".join(["User-agent: *\n", *closed]).encode()


def expected(site: int, page: int) -> bool:
    """Whether a page of a site may be fetched."""
    return page == site % PAGES
