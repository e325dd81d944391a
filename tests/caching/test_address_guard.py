from __future__ import annotations

from ipaddress import ip_address

import pytest

from robotsgate.caching._hops import (
    AddressRefusedError,
    FetchGuard,
    GuardRules,
    literal_address,
)
from robotsgate.caching._policy import AddressGuard, Policy

PUBLIC, OTHER_PUBLIC = "93.184.216.34", "2606:4700::1111"
LOOPBACK, PRIVATE = "127.0.0.1", "10.0.0.1"


def guard(mode: AddressGuard, *allowed: str) -> FetchGuard:
    policy = Policy(address_guard=mode, allowed_networks=allowed)
    return FetchGuard(GuardRules(policy))


def permitted(fetch: FetchGuard, *hops: str) -> list[bool]:
    """Whether each hop, a string of space-separated addresses, is permitted."""
    answers = []
    for hop in hops:
        addresses = [ip_address(text) for text in hop.split()]
        try:
            fetch.permit("host", addresses)
        except AddressRefusedError:
            answers.append(False)
        else:
            answers.append(True)
    return answers


HOPS: dict[str, tuple[AddressGuard, list[str], list[bool]]] = {
    "a public host": (AddressGuard.REDIRECTS, [PUBLIC], [True]),
    "a host on a closed network": (AddressGuard.REDIRECTS, [PRIVATE], [True]),
    "public to public": (AddressGuard.REDIRECTS, [PUBLIC, OTHER_PUBLIC], [True, True]),
    "public to special": (AddressGuard.REDIRECTS, [PUBLIC, LOOPBACK], [True, False]),
    "special to special": (AddressGuard.REDIRECTS, [PRIVATE, LOOPBACK], [True, True]),
    "special to public to special": (
        AddressGuard.REDIRECTS,
        [PRIVATE, PUBLIC, PRIVATE],
        [True, True, False],
    ),
    "a name with both kinds, to special": (
        AddressGuard.REDIRECTS,
        [f"{PRIVATE} {PUBLIC}", PRIVATE],
        [True, False],
    ),
    "public hosts only, a public one": (AddressGuard.PUBLIC_ONLY, [PUBLIC], [True]),
    "public hosts only, a private one": (AddressGuard.PUBLIC_ONLY, [PRIVATE], [False]),
    "no guard": (AddressGuard.OFF, [PUBLIC, LOOPBACK, PRIVATE], [True, True, True]),
}


@pytest.mark.parametrize("row", HOPS)
def test_guard_permits_or_refuses_each_hop(row: str) -> None:
    mode, hops, expected = HOPS[row]

    assert permitted(guard(mode), *hops) == expected


def test_only_public_addresses_are_permitted_after_a_public_hop() -> None:
    fetch = guard(AddressGuard.REDIRECTS)
    both = [ip_address(PRIVATE), ip_address(PUBLIC)]
    fetch.permit("first", [ip_address(PUBLIC)])

    assert fetch.permit("both", both) == [ip_address(PUBLIC)]


@pytest.mark.parametrize("mode", [AddressGuard.PUBLIC_ONLY, AddressGuard.REDIRECTS])
def test_allowed_network_counts_as_public(mode: AddressGuard) -> None:
    fetch = guard(mode, "10.0.0.0/24", "fd00::/16")

    answers = permitted(
        fetch, PRIVATE, "fd00::1", PUBLIC, PRIVATE, "10.0.1.1", LOOPBACK
    )

    assert answers == [True, True, True, True, False, False]


def test_refusal_names_the_host_the_address_and_its_class() -> None:
    with pytest.raises(
        AddressRefusedError,
        match=r"refused 10\.0\.0\.1 \(private\), an address of intern\.example",
    ):
        guard(AddressGuard.PUBLIC_ONLY).permit("intern.example", [ip_address(PRIVATE)])


def test_refusal_names_a_host_that_is_an_ip_address_only_once() -> None:
    with pytest.raises(AddressRefusedError, match=r"refused 10\.0\.0\.1 \(private\)$"):
        guard(AddressGuard.PUBLIC_ONLY).permit(PRIVATE, [ip_address(PRIVATE)])


def checked(fetch: FetchGuard, *hosts: str) -> list[bool]:
    answers = []
    for host in hosts:
        try:
            fetch.check_host(host)
        except AddressRefusedError:
            answers.append(False)
        else:
            answers.append(True)
    return answers


@pytest.mark.parametrize(
    ("mode", "hosts", "expected"),
    [
        (AddressGuard.REDIRECTS, ["example.com", PRIVATE], [True, False]),
        (AddressGuard.REDIRECTS, ["example.com", "[::1]"], [True, False]),
        (AddressGuard.REDIRECTS, ["example.com", "localhost"], [True, False]),
        (AddressGuard.REDIRECTS, ["example.com", "a.localhost."], [True, False]),
        (AddressGuard.REDIRECTS, ["example.com", "intern.example"], [True, True]),
        (AddressGuard.REDIRECTS, [PRIVATE, LOOPBACK, "localhost"], [True] * 3),
        (AddressGuard.PUBLIC_ONLY, ["example.com", "localhost"], [True, False]),
        (AddressGuard.PUBLIC_ONLY, [PUBLIC, f"[{OTHER_PUBLIC}]"], [True, True]),
        (AddressGuard.OFF, ["example.com", LOOPBACK], [True, True]),
    ],
)
def test_check_host_looks_only_at_the_text_of_the_host(
    mode: AddressGuard, hosts: list[str], expected: list[bool]
) -> None:
    assert checked(guard(mode), *hosts) == expected


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("LOCALHOST", "127.0.0.1"),
        ("x.localhost", "127.0.0.1"),
        ("example.com", None),
        ("notlocalhost", None),
        ("server1", None),
        ("", None),
    ],
)
def test_literal_address_is_read_from_the_host(host: str, address: str | None) -> None:
    expected = None if address is None else ip_address(address)

    assert literal_address(host) == expected
