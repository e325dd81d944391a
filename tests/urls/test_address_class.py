from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.urls._address_class import AddressClass, address_class

CLASSES: dict[AddressClass, list[str]] = {
    AddressClass.PUBLIC: [
        "1.1.1.1", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255",
        "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0",
        "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
        "198.17.255.255", "198.20.0.0", "223.255.255.255", "2001:200::",
        "2001:4860:4860::8888", "2606:4700::1111", "3ffe:ffff::1", "2a00::",
    ],
    AddressClass.UNSPECIFIED: [
        "0.0.0.1", "0.1.2.3", "::",
    ],
    AddressClass.LOOPBACK: [
        "127.0.0.1", "127.255.255.255", "127.0.0.53", "::1",
    ],
    AddressClass.PRIVATE: [
        "10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0",
        "192.168.255.255", "fc00::", "fdff:ffff::1", "fec0::1", "64:ff9b:1::1",
    ],
    AddressClass.SHARED: [
        "100.64.0.0", "100.127.255.255",
    ],
    AddressClass.LINK_LOCAL: [
        "169.254.0.0", "169.254.255.255", "fe80::1", "febf::1",
    ],
    AddressClass.METADATA: [
        "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16",
        "192.0.0.192", "fd00:ec2::254", "fd20:ce::254",
    ],
    AddressClass.MULTICAST: [
        "224.0.0.1", "239.255.255.255", "ff02::1",
    ],
    AddressClass.DOCUMENTATION: [
        "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1",
    ],
    AddressClass.BENCHMARKING: [
        "198.18.0.0", "198.19.255.255", "2001:2::1",
    ],
    AddressClass.RESERVED: [
        "192.0.0.1", "192.88.99.1", "240.0.0.1", "255.255.255.255", "100::1",
        "2001:10::1", "2001:1ff::1", "4000::", "5f00::1", "1::1",
    ],
}  # fmt: skip

ADDRESSES = st.integers(0, 2**32 - 1).map(IPv4Address)


def embedded(address: IPv4Address, prefix: str, *, shift: int = 0) -> IPv6Address:
    return IPv6Address(int(IPv6Address(prefix)) | int(address) << shift)


def test_every_class_has_examples() -> None:
    assert set(CLASSES) == set(AddressClass)


@pytest.mark.parametrize("kind", CLASSES)
def test_address_has_its_class(kind: AddressClass) -> None:
    classes = {text: address_class(ip_address(text)) for text in CLASSES[kind]}

    assert classes == dict.fromkeys(CLASSES[kind], kind)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize(("prefix", "shift"), [
    ("::ffff:0:0", 0), ("::ffff:0:0:0", 0), ("64:ff9b::", 0), ("2002::", 80),
    ("2001:0::", 64),
], ids=["mapped", "translated", "NAT64", "6to4", "Teredo server"])  # fmt: skip
def test_address_has_the_class_of_the_ipv4_address_embedded_in_it(
    kind: AddressClass, prefix: str, shift: int
) -> None:
    for text in CLASSES[kind]:
        if ":" in text:
            continue
        outer = embedded(IPv4Address(text), prefix, shift=shift)
        if prefix == "2001:0::":  # with a public client
            outer = IPv6Address(int(outer) | int(IPv4Address("1.1.1.1")) ^ 0xFFFF_FFFF)

        assert address_class(outer) is kind, text


def test_client_address_in_a_teredo_address_matters_too() -> None:
    server, client = IPv4Address("1.1.1.1"), int(IPv4Address("10.0.0.1"))
    outer = embedded(server, "2001:0::", shift=64)

    kind = address_class(IPv6Address(int(outer) | client ^ 0xFFFF_FFFF))

    assert kind is AddressClass.PRIVATE


def test_ipv4_compatible_address_has_the_class_of_its_ipv4_address() -> None:
    assert address_class(ip_address("::7f00:1")) is AddressClass.LOOPBACK
    assert address_class(ip_address("::808:808")) is AddressClass.PUBLIC


def test_zone_of_an_address_is_ignored() -> None:
    assert address_class(ip_address("fe80::1%eth0")) is AddressClass.LINK_LOCAL


@given(address=ADDRESSES)
def test_public_ipv4_address_is_global_and_not_multicast(
    address: IPv4Address,
) -> None:
    if address_class(address) is AddressClass.PUBLIC:
        assert address.is_global
        assert not address.is_multicast


@given(number=st.integers(0, 2**128 - 1) | st.integers(1 << 125, (1 << 126) - 1))
def test_public_ipv6_address_is_unicast_and_global(number: int) -> None:
    address = IPv6Address(number)

    if address_class(address) is AddressClass.PUBLIC:
        assert number >> 125 == 1 or number >> 48 == 0
        assert not address.is_private
