"""A long outage, hour by hour, through the whole checker.

The phases and the retry schedule are worked out here a second time, from the text
of the semantics and not with the code of `caching`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import httpx
import pytest

from robotsgate import Policy, Reason
from robotsgate.testing import ManualClock

from .builders import (
    AGENT,
    DAY,
    HOUR,
    MINUTE,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robotsgate import RobotsChecker, Verdict
    from robotsgate.testing import FakeSite

pytestmark = pytest.mark.anyio

HOURS_OF_OUTAGE = 31 * 24

NOTHING = "nothing is allowed"
COPY = "the copy decides"
EVERYTHING = "everything is allowed"

POLICIES = {
    "default": Policy(),
    "google_today": Policy.google_today(),
    "google_2021": Policy.google_2021(),
    "rfc9309": Policy.rfc9309(),
    "strict": Policy.strict(),
}

# What is in force from so long after the first failure on.
PHASES_WITH_A_COPY = {
    "default": [(0, COPY), (30 * DAY, EVERYTHING)],
    "google_today": [(0, NOTHING), (12 * HOUR, COPY), (30 * DAY, EVERYTHING)],
    "google_2021": [(0, NOTHING), (30 * DAY, COPY)],
    "rfc9309": [(0, COPY), (30 * DAY, EVERYTHING)],
    "strict": [(0, COPY), (30 * DAY, NOTHING)],
}
PHASES_WITHOUT_A_COPY = {
    "default": [(0, NOTHING), (30 * DAY, EVERYTHING)],
    "google_today": [(0, NOTHING), (30 * DAY, EVERYTHING)],
    "google_2021": [(0, NOTHING), (30 * DAY, EVERYTHING)],
    "rfc9309": [(0, NOTHING), (30 * DAY, EVERYTHING)],
    "strict": [(0, NOTHING), (30 * DAY, NOTHING)],
}

# Public page, private page, the file itself.
URLS = (PUBLIC, PRIVATE, ROBOTS_TXT)
ANSWERS = {
    NOTHING: (False, False, True),
    COPY: (True, False, True),
    EVERYTHING: (True, True, True),
}


@pytest.fixture
def manual_clock() -> ManualClock:
    """Stands still at a whole hour."""
    return ManualClock()


def phase_at(elapsed: float, phases: list[tuple[float, str]]) -> str:
    """What is in force so long after the first failure."""
    return [phase for begin, phase in phases if begin <= elapsed][-1]


def retry_spans(first: float) -> Iterator[float]:
    """Seconds between attempts: doubled up to an hour, and a tenth of jitter."""
    jitter = 1 + 0.1 * zlib.crc32(ORIGIN.encode()) / 2**32
    span = first
    while True:
        yield min(span, HOUR) * jitter
        span *= 2


def attempts_of_hourly_questions(hours: int, first_span: float) -> list[int]:
    """In which hours of an outage a question is asked that causes an attempt."""
    spans = retry_spans(first_span)
    next_attempt = 0.0
    attempts = []
    for hour in range(hours):
        if hour * HOUR >= next_attempt:
            attempts.append(hour)
            next_attempt = hour * HOUR + next(spans)
    return attempts


def fails_with_503(site: FakeSite) -> None:
    site.serve(ORIGIN, "<title>busy</title>", status=503)


def fails_with_500(site: FakeSite) -> None:
    site.serve(ORIGIN, "<title>broken</title>", status=500)


def fails_to_connect(site: FakeSite) -> None:
    site.fail(ORIGIN, httpx.ConnectError("connection refused"))


async def answers_of(checker: RobotsChecker) -> tuple[bool, ...]:
    """What `can_fetch` says about `URLS`."""
    return tuple([await checker.can_fetch(AGENT, url) for url in URLS])


@pytest.mark.parametrize(
    ("preset", "fail", "first_span"),
    [
        *(
            pytest.param(preset, fails_with_503, 30, id=f"503 with {preset}")
            for preset in POLICIES
        ),
        pytest.param("default", fails_with_500, MINUTE, id="500"),
        pytest.param("default", fails_to_connect, MINUTE, id="dead host"),
    ],
)
@pytest.mark.parametrize("has_copy", [True, False], ids=["with a copy", "without one"])
async def test_outage_of_31_days_follows_the_policy_and_the_retry_schedule(
    manual_clock: ManualClock,
    preset: str,
    fail: Callable[[FakeSite], None],
    first_span: float,
    *,
    has_copy: bool,
) -> None:
    site = site_of()
    checker = checker_of(site, policy=POLICIES[preset], clock=manual_clock)
    phases = (PHASES_WITH_A_COPY if has_copy else PHASES_WITHOUT_A_COPY)[preset]
    if has_copy:
        await checker.prefetch([ORIGIN])
        manual_clock.advance(DAY)
    fail(site)
    site.requests.clear()
    attempts = []

    for hour in range(HOURS_OF_OUTAGE + 1):
        requests_before = len(site.requests)

        answers = await answers_of(checker)

        expected = phase_at(hour * HOUR, phases)
        assert answers == ANSWERS[expected], (hour, expected)
        attempts += [hour] * (len(site.requests) - requests_before)
        manual_clock.advance(HOUR)

    assert attempts == attempts_of_hourly_questions(HOURS_OF_OUTAGE + 1, first_span)


async def test_attempts_of_a_minutely_crawl_follow_the_retry_schedule(
    manual_clock: ManualClock,
) -> None:
    site = site_of(status=503)
    checker = checker_of(site, clock=manual_clock)
    began_at = manual_clock.now()
    attempts: list[float] = []

    for _ in range(12 * 60):
        requests_before = len(site.requests)
        await checker.can_fetch(AGENT, PUBLIC)
        if len(site.requests) > requests_before:
            attempts.append(manual_clock.now() - began_at)
        manual_clock.advance(MINUTE)

    spans = retry_spans(30)
    expected = [0.0]
    while expected[-1] < 12 * HOUR:
        due = expected[-1] + next(spans)
        expected.append(-(-due // MINUTE) * MINUTE)
    assert attempts == [begin for begin in expected if begin < 12 * HOUR]


@pytest.mark.parametrize("preset", POLICIES)
async def test_verdicts_of_an_outage_tell_its_phase(
    manual_clock: ManualClock, preset: str
) -> None:
    site = site_of()
    checker = checker_of(site, policy=POLICIES[preset], clock=manual_clock)
    await checker.prefetch([ORIGIN])
    manual_clock.advance(DAY)
    fails_with_503(site)
    first_failure = manual_clock.now()
    seen: dict[str, Verdict] = {}

    for _ in range(HOURS_OF_OUTAGE):
        elapsed = manual_clock.now() - first_failure
        phase = phase_at(elapsed, PHASES_WITH_A_COPY[preset])
        verdict = await checker.check(AGENT, PRIVATE)
        seen[phase] = verdict
        assert verdict.status == 503
        assert verdict.is_stale is (phase is COPY)
        if phase is COPY:
            assert verdict.reason is Reason.DISALLOWED_BY_RULE
            assert verdict.fresh_until == first_failure
        elif elapsed < 30 * DAY:
            assert verdict.reason is Reason.UNREACHABLE
        else:
            assert verdict.reason is Reason.UNREACHABLE_TOO_LONG
        manual_clock.advance(HOUR)

    assert set(seen) == {phase for _, phase in PHASES_WITH_A_COPY[preset]}


@pytest.mark.parametrize("preset", POLICIES)
@pytest.mark.parametrize("days", [0, 31])
async def test_recovery_ends_the_outage_at_the_next_attempt(
    manual_clock: ManualClock, preset: str, days: int
) -> None:
    site = site_of()
    checker = checker_of(site, policy=POLICIES[preset], clock=manual_clock)
    await checker.prefetch([ORIGIN])
    manual_clock.advance(DAY)
    fails_with_503(site)
    for _ in range(24 * days + 1):
        await answers_of(checker)
        manual_clock.advance(HOUR)
    site.serve(ORIGIN, "User-agent: *\nDisallow: /public\n")
    manual_clock.advance(HOUR)

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.reason is Reason.DISALLOWED_BY_RULE
    assert verdict.is_stale is False
    assert verdict.fetched_at == manual_clock.now()
    assert await answers_of(checker) == (False, True, True)


async def test_second_outage_begins_with_its_own_first_failure(
    manual_clock: ManualClock,
) -> None:
    site = site_of()
    checker = checker_of(site, policy=Policy.google_today(), clock=manual_clock)
    for _ in range(2):
        site.serve(ORIGIN, RULES)
        await checker.refresh(ORIGIN)
        manual_clock.advance(DAY)
        fails_with_503(site)
        in_grace = await answers_of(checker)
        manual_clock.advance(20 * DAY)
        after_grace = await answers_of(checker)

        assert in_grace == ANSWERS[NOTHING]
        assert after_grace == ANSWERS[COPY]


async def test_404_in_an_outage_ends_it_and_drops_the_copy(
    manual_clock: ManualClock,
) -> None:
    site = site_of()
    checker = checker_of(site, clock=manual_clock)
    await checker.prefetch([ORIGIN])
    manual_clock.advance(DAY)
    fails_with_503(site)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, status=404)
    manual_clock.advance(HOUR)
    missing = await answers_of(checker)
    fails_with_503(site)
    manual_clock.advance(DAY)

    answers = await answers_of(checker)

    assert (missing, answers) == (ANSWERS[EVERYTHING], ANSWERS[NOTHING])


async def test_outage_that_nobody_asked_about_has_no_copy_after_its_window(
    manual_clock: ManualClock,
) -> None:
    site = site_of()
    checker = checker_of(site, clock=manual_clock)
    await checker.prefetch([ORIGIN])
    fails_with_503(site)
    manual_clock.advance(DAY + 30 * DAY)

    answers = await answers_of(checker)

    assert answers == ANSWERS[NOTHING]


async def test_retry_after_goes_before_the_schedule(
    manual_clock: ManualClock,
) -> None:
    site = site_of(status=503, retry_after="36000")
    checker = checker_of(site, clock=manual_clock)
    attempts = []

    for hour in range(31):
        requests_before = len(site.requests)
        await checker.can_fetch(AGENT, PUBLIC)
        attempts += [hour] * (len(site.requests) - requests_before)
        manual_clock.advance(HOUR)

    assert attempts == [0, 10, 20, 30]
