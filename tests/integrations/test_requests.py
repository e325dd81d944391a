"""What only the wrap of requests does; `test_behaviours.py` has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import requests

from robotsgate import DisallowedError, sync
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, checker_of, site_of
from tests.servers.answers import Reply, Routes, redirect
from tests.servers.proxy import forward_proxy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer


def test_asynchronous_checker_is_refused() -> None:
    """Its coroutines are true, so every page was fetched."""
    with pytest.raises(TypeError, match=r"of robotsgate\.sync, got <robotsgate\."):
        RobotsAdapter(checker_of(site_of()), AGENT)  # type: ignore[arg-type]


def test_path_that_urllib3_changes_for_a_proxy_is_asked_as_well(
    serve: Callable[..., LoopbackServer],
) -> None:
    """Without a proxy, the path of a redirect stays; urllib3 cuts it for a proxy."""
    rules = Reply(body=b"User-agent: *\nDisallow: /private")
    routes = {"/robots.txt": rules, "/private": Reply()}
    server = serve(Routes(routes))
    routes["/away"] = redirect(f"{server.url}/..//private")
    proxy = serve(forward_proxy)
    with (
        sync.RobotsChecker(user_agent=AGENT) as checker,
        requests.Session() as session,
    ):
        session.mount("http://", RobotsAdapter(checker, AGENT))
        session.proxies = {"http": proxy.url}

        with pytest.raises(DisallowedError):
            session.get(f"{server.url}/away")

    assert server.targets == ["/robots.txt", "/away"]
