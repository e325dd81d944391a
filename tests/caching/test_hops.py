"""Which responses lead to another GET (RFC 9309 §2.3.1.2)."""

from __future__ import annotations

from robotsgate.caching._hops import Hops
from robotsgate.caching._policy import Policy
from robotsgate.urls._url import Origin
from tests.tables import cases

from .builders import ORIGIN


@cases("status location is_followed", {
    "a redirect to another host is followed": (302, "https://b.example/a", True),
    "a 300 is followed": (300, "/a", True),
    "a 304 is not followed": (304, "/a", False),
    "a 201 is not followed": (201, "/a", False),
    "a loop is not followed": (302, "/robots.txt", False),
    "another scheme is not followed": (302, "ftp://b.example/a", False),
})  # fmt: skip
def test_only_redirects_are_followed(
    status: int, location: str, *, is_followed: bool
) -> None:
    hops = Hops(Origin.from_url(ORIGIN), policy=Policy())

    outcome = hops.after(status, {"location": location}, b"")

    assert (outcome is None) == is_followed


def test_sixth_redirect_is_not_followed() -> None:
    hops = Hops(Origin.from_url(ORIGIN), policy=Policy())

    outcomes = [hops.after(302, {"location": f"/{n}"}, b"") for n in range(6)]

    assert [outcome is None for outcome in outcomes] == [True] * 5 + [False]
