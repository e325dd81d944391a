"""Redirects into the crawler's own network, which the address guard refuses.

Here 127.0.0.2 counts as public; servers at the machine's other loopback addresses
must not receive a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate import AddressGuard, Policy
from tests.faults import certificates
from tests.faults.fault import RULES
from tests.faults.rows import head, refused, rules_apply
from tests.servers.answers import Raw, Reply, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_PUBLIC = "127.0.0.2"
_ALLOWED = (f"{_PUBLIC}/32",)
_PUBLIC_ONLY = Policy(address_guard=AddressGuard.PUBLIC_ONLY, allowed_networks=_ALLOWED)
_REDIRECTS = Policy(allowed_networks=_ALLOWED)
_RULES = Reply(body=RULES)

# Connections per server: none to the internal one, one to the external one.
_UNTOUCHED = (0, 1)


def _to(host: str, *, listening: str = "127.0.0.1") -> Callable[[Stage], str]:
    """A redirect from an external server to an internal one, addressed as `host`."""

    def arrange(stage: Stage) -> str:
        inside = stage.serve(_RULES, host=listening)
        location = f"Location: http://{host}:{inside.port}/robots.txt"
        answer = Raw(head("302 Found", location, "Content-Length: 0"), Connection.hang)
        return stage.serve(answer, host=_PUBLIC).url

    return arrange


def _inside(stage: Stage) -> str:
    return stage.serve(_RULES).url


def _inside_to_inside(stage: Stage) -> str:
    second = stage.serve(_RULES, host="127.0.0.3")
    return stage.serve(redirect(f"{second.url}/robots.txt")).url


def _via_two_outside(stage: Stage) -> str:
    inside = stage.serve(_RULES)
    second = stage.serve(redirect(f"{inside.url}/robots.txt"), host=_PUBLIC)
    return stage.serve(redirect(f"{second.url}/robots.txt"), host=_PUBLIC).url


def _inside_to_outside_and_back(stage: Stage) -> str:
    last = stage.serve(_RULES)
    outside = stage.serve(redirect(f"{last.url}/robots.txt"), host=_PUBLIC)
    return stage.serve(redirect(f"{outside.url}/robots.txt"), host="127.0.0.3").url


def _to_tls(stage: Stage) -> str:
    inside = stage.serve(_RULES, ssl_context=certificates.valid())
    return stage.serve(redirect(f"{inside.url}/robots.txt"), host=_PUBLIC).url


def _to_metadata(stage: Stage) -> str:
    location = "http://169.254.169.254/latest/meta-data/"
    return stage.serve(redirect(location), host=_PUBLIC).url


ADDRESSES = (
    refused("redirects to an internal address", _to("127.0.0.1"), policy=_REDIRECTS,
        accepted=_UNTOUCHED),
    refused("redirects to a name that resolves to an internal address",
        _to("localhost"), policy=_REDIRECTS, accepted=_UNTOUCHED),
    refused("redirects to a cloud metadata service, `169.254.169.254`", _to_metadata,
        policy=_REDIRECTS, accepted=(1,)),
    refused("redirects to an external address, and from there to an internal one",
        _via_two_outside, policy=_REDIRECTS, accepted=(0, 1, 1)),
    refused("redirects from an internal address to an external one, and back",
        _inside_to_outside_and_back, policy=_REDIRECTS, accepted=(0, 1, 1)),
    refused("redirects to https at an internal address", _to_tls, policy=_REDIRECTS,
        accepted=_UNTOUCHED),
    *(
        refused(
            f"redirects to an internal address, written `{host}`",
            _to(host, listening="::1" if host == "[::1]" else "127.0.0.1"),
            policy=_PUBLIC_ONLY,
            accepted=_UNTOUCHED,
        )
        for host in (
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "0.0.0.0",  # noqa: S104 (requested, not listened on)
            "0",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "１２７。０。０。１",  # noqa: RUF001 (fullwidth digits on purpose)
            "LOCALHOST",
        )
    ),
    refused("has an internal address, with `AddressGuard.PUBLIC_ONLY`", _inside,
        policy=_PUBLIC_ONLY, accepted=(0,)),
    rules_apply("has an internal address", _inside, policy=_REDIRECTS, accepted=(1,)),
    rules_apply("redirects from one internal address to another", _inside_to_inside,
        policy=_REDIRECTS, accepted=(1, 1)),
)  # fmt: skip
