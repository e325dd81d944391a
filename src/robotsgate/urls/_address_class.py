"""Classifies IP addresses by kind of network. Pure.

Sources: the IANA registries of special-purpose addresses (RFC 6890), RFC 4291 for
IPv6, and the cloud providers' documentation of their metadata services. Does not use
`ipaddress.is_global`, which considers some of these addresses public and varies between
Python versions.
"""

from __future__ import annotations

import enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address


class AddressClass(enum.Enum):
    """The kind of network an address belongs to; all but `PUBLIC` are special."""

    PUBLIC = "public"
    UNSPECIFIED = "unspecified"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SHARED = "shared by a provider's customers"
    LINK_LOCAL = "link-local"
    METADATA = "cloud metadata"
    MULTICAST = "multicast"
    DOCUMENTATION = "documentation"
    BENCHMARKING = "benchmarking"
    RESERVED = "reserved"


# The first network that contains an address determines its class.
_SPECIAL = {
    AddressClass.METADATA: (
        "169.254.169.254/32",  # most clouds
        "169.254.170.2/32",  # container credentials on Amazon
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure; looks like a public address
        "192.0.0.192/32",  # Oracle
        "fd00:ec2::254/128",  # Amazon
        "fd20:ce::254/128",  # Google
        "fd00:42::42/128",  # Scaleway
    ),
    AddressClass.UNSPECIFIED: ("0.0.0.0/8", "::/128"),
    AddressClass.LOOPBACK: ("127.0.0.0/8", "::1/128"),
    AddressClass.PRIVATE: (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "fc00::/7",
        "fec0::/10",  # site-local, deprecated
        "64:ff9b:1::/48",  # for local translation (RFC 8215)
    ),
    AddressClass.SHARED: ("100.64.0.0/10",),  # RFC 6598, carrier-grade NAT
    AddressClass.LINK_LOCAL: ("169.254.0.0/16", "fe80::/10"),
    AddressClass.MULTICAST: ("224.0.0.0/4", "ff00::/8"),
    AddressClass.DOCUMENTATION: (
        *("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
        *("2001:db8::/32", "3fff::/20"),
    ),
    AddressClass.BENCHMARKING: ("198.18.0.0/15", "2001:2::/48"),
    AddressClass.RESERVED: ("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4"),
}
# Networks whose addresses embed an IPv4 address, and how many bits follow it.
_EMBEDDING = (
    ("::ffff:0:0/96", 0),  # IPv4-mapped
    ("::ffff:0:0:0/96", 0),  # IPv4-translated, RFC 7915
    ("64:ff9b::/96", 0),  # NAT64, RFC 6052
    ("::/96", 0),  # IPv4-compatible, deprecated
    ("2002::/16", 80),  # 6to4, RFC 3056
    ("2001::/32", 64),  # Teredo server, RFC 4380; the client address is inverted
)
_TEREDO = IPv6Network("2001::/32")
# IANA assigns public addresses only in the first of these networks. The second is part
# of the first, and is reserved for protocols.
_UNICAST = IPv6Network("2000::/3")
_PROTOCOLS = IPv6Network("2001::/23")

_NETWORKS = [
    (ip_network(text), kind) for kind, texts in _SPECIAL.items() for text in texts
]
_EMBEDDINGS = [(IPv6Network(text), shift) for text, shift in _EMBEDDING]


def address_class(address: IPAddress) -> AddressClass:
    """The class of `address`, or of a special IPv4 address embedded in it."""
    for network, kind in _NETWORKS:
        if address in network:
            return kind
    if isinstance(address, IPv4Address):
        return AddressClass.PUBLIC
    embedded = [address_class(inner) for inner in _embedded_addresses(address)]
    for kind in embedded:
        if kind is not AddressClass.PUBLIC:
            return kind
    is_public = embedded or (address in _UNICAST and address not in _PROTOCOLS)
    return AddressClass.PUBLIC if is_public else AddressClass.RESERVED


def _embedded_addresses(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that packets for `address` are actually sent to."""
    number = int(address)
    inner = [
        IPv4Address(number >> shift & 0xFFFF_FFFF)
        for network, shift in _EMBEDDINGS
        if address in network
    ]
    if address in _TEREDO:
        inner.append(IPv4Address(~number & 0xFFFF_FFFF))
    return inner
