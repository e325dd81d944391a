"""The durable crawl example with three workers, one of which is killed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.fleet.polite_host import PoliteHost
from tests.servers.valkey import running_valkey
from tests.stores.child import child

DELAY = 0.2
HOSTS = 6
PAGES = [f"/page/{number}" for number in range(10)]

_TIMEOUT_SECONDS = 120.0


@pytest.mark.slow
def test_killing_a_worker_loses_no_page_and_shortens_no_delay() -> None:
    bodies: dict[str, str] = {}
    with running_valkey() as redis, ExitStack() as stack:
        hosts = [
            stack.enter_context(
                PoliteHost(
                    crawl_delay=DELAY,
                    pages=bodies,
                    address=f"127.0.0.{number + 1}",
                    target_to_hold=PAGES[5] if number == HOSTS // 2 else "",
                )
            )
            for number in range(HOSTS)
        ]
        bodies["/page"] = "".join(
            f'<a href="{host.origin}{target}">'
            for target in [*PAGES, "/private"]
            for host in hosts
        )
        workers = {
            name: stack.enter_context(
                child("tests.fleet.durable_worker", name, redis.url, hosts[0].url)
            )
            for name in ("one", "two", "three")
        }
        holding_host = hosts[HOSTS // 2]
        holding_host.wait_until_it_holds()
        workers.pop(holding_host.held_agent).kill()
        holding_host.release()
        for worker in workers.values():
            _, error = worker.communicate(timeout=_TIMEOUT_SECONDS)
            assert worker.returncode == 0, error

    for host in hosts:
        assert (
            len(host.pages) <= len(PAGES) + 2
        )  # the start page, and one repeated after the kill
        assert {visit.target for visit in host.pages} - {"/page"} == set(PAGES)
        assert min(gap for *_, gap in host.gaps) >= DELAY
    agents = [visit.agent for visit in holding_host.pages if visit.target == PAGES[5]]
    assert len(agents) == 2
    assert agents[0] == holding_host.held_agent != agents[1]
