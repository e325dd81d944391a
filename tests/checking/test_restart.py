"""A good copy outlives the process that fetched it, for as long as the policy says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from robotsgate import Policy, Reason
from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import (
    AGENT,
    DAY,
    HOUR,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    RULES,
    checker_of,
    site_of,
)
from tests.servers.answers import Reply, Routes
from tests.stores.child import child

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from robotsgate import Verdict
    from tests.servers.loopback import LoopbackServer

START = 1_800_000_000.0

# The first question after the copy is no longer fresh: the outage begins.
FIRST_FAILURE = START + DAY + 1

_PATIENCE_SECONDS = 60.0


def _asked(store: str, url: str, now: float) -> dict[str, object]:
    """What a process of its own says whose clock stands at `now`."""
    with child("tests.fleet.asker", store, url, now) as process:
        out, error = process.communicate(timeout=_PATIENCE_SECONDS)
    assert process.returncode == 0, error
    found: dict[str, object] = json.loads(out)
    return found


def test_copy_of_a_process_that_ended_answers_for_thirty_days_and_no_longer(
    serve: Callable[..., LoopbackServer], tmp_path: Path
) -> None:
    answers = {"/robots.txt": Reply(body=RULES.encode())}
    server = serve(Routes(answers))
    store = f"sqlite:///{tmp_path / 'robots.db'}"

    def ask(path: str, now: float) -> dict[str, object]:
        return _asked(store, f"{server.url}{path}", now)

    first = ask("/private", START)
    known = ask("/private", START + HOUR)
    answers["/robots.txt"] = Reply(status=503)
    during = {
        seconds: (
            ask("/private", FIRST_FAILURE + seconds),
            ask("/public", FIRST_FAILURE + seconds),
        )
        for seconds in (0, DAY, 29 * DAY, 30 * DAY - 1)
    }
    after = ask("/private", FIRST_FAILURE + 30 * DAY + 1)

    assert first == {"allowed": False, "stale": False, "fetches": 1}
    assert known == {"allowed": False, "stale": False, "fetches": 0}
    for private, public in during.values():
        assert (private["allowed"], private["stale"]) == (False, True)
        assert (public["allowed"], public["stale"]) == (True, True)
    assert (after["allowed"], after["stale"]) == (True, False)


# --- in this process, with each preset ----------------------------------------------

NOTHING, COPY, EVERYTHING = (False, False), (False, True), (True, True)
"""Whether the private page and the public one may be fetched."""

PRESETS = {
    "default": (Policy(), COPY, COPY, EVERYTHING),
    "google_today": (Policy.google_today(), NOTHING, COPY, EVERYTHING),
    "google_2021": (Policy.google_2021(), NOTHING, NOTHING, COPY),
    "rfc9309": (Policy.rfc9309(), COPY, COPY, EVERYTHING),
    "strict": (Policy.strict(), COPY, COPY, NOTHING),
}


async def _verdicts(
    site: FakeSite, path: Path, policy: Policy, now: float
) -> tuple[Verdict, Verdict]:
    """What a new checker with a new store says about both pages."""
    async with (
        SQLiteStore(path) as store,
        checker_of(site, store=store, policy=policy, clock=ManualClock(now)) as checker,
    ):
        return await checker.check(AGENT, PRIVATE), await checker.check(AGENT, PUBLIC)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("policy", "at_first", "meanwhile", "afterwards"), PRESETS.values(), ids=PRESETS
)
async def test_new_checkers_do_in_an_outage_what_the_preset_says(
    tmp_path: Path,
    policy: Policy,
    at_first: tuple[bool, bool],
    meanwhile: tuple[bool, bool],
    afterwards: tuple[bool, bool],
) -> None:
    path, site = tmp_path / "robots.db", site_of()

    async def allowed(now: float) -> tuple[bool, bool]:
        private, public = await _verdicts(site, path, policy, now)
        return private.allowed, public.allowed

    before = await allowed(START)
    site.serve(ORIGIN, status=503)
    first = await allowed(FIRST_FAILURE)
    during = [await allowed(FIRST_FAILURE + day * DAY) for day in range(1, 30)]
    last = await allowed(FIRST_FAILURE + 30 * DAY - 1)
    after = await allowed(FIRST_FAILURE + 30 * DAY + 1)
    long_after = await allowed(FIRST_FAILURE + 60 * DAY + 2)

    assert before == COPY
    assert first == at_first
    assert during == [meanwhile] * 29
    assert last == meanwhile
    assert after == afterwards
    # Nobody had asked for a stale window, which is when a new outage may begin:
    # what the stores kept says since when the old one lasts.
    assert long_after in (afterwards, NOTHING)


@pytest.mark.anyio
async def test_copy_nobody_asked_about_answers_when_the_outage_is_found(
    tmp_path: Path,
) -> None:
    """The thirty days count from the first failure that anybody has seen."""
    path, site, policy = tmp_path / "robots.db", site_of(), Policy()
    await _verdicts(site, path, policy, START)
    site.serve(ORIGIN, status=503)

    found = [
        await _verdicts(site, path, policy, START + days * DAY) for days in (29, 58)
    ]
    private, _ = await _verdicts(site, path, policy, START + 59 * DAY + 1)

    assert [(one.allowed, other.allowed) for one, other in found] == [COPY, COPY]
    assert all(one.is_stale for one, _ in found)
    assert private.allowed
    assert private.reason is Reason.UNREACHABLE_TOO_LONG


@pytest.mark.anyio
async def test_copy_that_nobody_could_use_any_more_is_not_used(tmp_path: Path) -> None:
    path, site, policy = tmp_path / "robots.db", site_of(), Policy()
    await _verdicts(site, path, policy, START)
    site.serve(ORIGIN, status=503)

    private, public = await _verdicts(site, path, policy, START + 32 * DAY)

    assert (private.allowed, public.allowed) == NOTHING
    assert private.reason is Reason.UNREACHABLE


@pytest.mark.anyio
async def test_copy_is_replaced_when_the_server_is_back(tmp_path: Path) -> None:
    path, site, policy = tmp_path / "robots.db", site_of(), Policy()
    await _verdicts(site, path, policy, START)
    site.serve(ORIGIN, status=503)
    await _verdicts(site, path, policy, FIRST_FAILURE)
    site.serve(ORIGIN, "User-agent: *\nDisallow: /public\n")

    private, public = await _verdicts(site, path, policy, FIRST_FAILURE + DAY)

    assert (private.allowed, public.allowed) == (True, False)
    assert not private.is_stale
