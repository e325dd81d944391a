"""Outages of a month, hour by hour, with time as an argument.

The expected attempts and phases are worked out here once more, in closed form.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._plan import Plan, entry_after, plan
from robotsgate.caching._ruling import Effect, ruling

from .builders import (
    DAY,
    HOUR,
    NOW,
    ORIGIN,
    PRESETS,
    PRIVATE,
    PUBLIC,
    answer,
    answered,
    failed,
    refused,
)

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy

DAYS_OF_OUTAGE = 32
HOURS_OF_OUTAGE = DAYS_OF_OUTAGE * 24

# Each lasts until the hour named, counted from the first failure.
Phases = list[tuple[Effect, int]]

WITH_A_COPY: dict[str, Phases] = {
    "default": [(Effect.RULES, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "google_today": [
        (Effect.DISALLOW, 12),
        (Effect.RULES, 720),
        (Effect.ALLOW, HOURS_OF_OUTAGE),
    ],
    "google_2021": [(Effect.DISALLOW, 720), (Effect.RULES, HOURS_OF_OUTAGE)],
    "rfc9309": [(Effect.RULES, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "strict": [(Effect.RULES, 720), (Effect.DISALLOW, HOURS_OF_OUTAGE)],
}

WITHOUT_A_COPY: dict[str, Phases] = {
    "default": [(Effect.DISALLOW, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "google_today": [(Effect.DISALLOW, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "google_2021": [(Effect.DISALLOW, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "rfc9309": [(Effect.DISALLOW, 720), (Effect.ALLOW, HOURS_OF_OUTAGE)],
    "strict": [(Effect.DISALLOW, HOURS_OF_OUTAGE)],
}

OUTCOMES: dict[str, tuple[Outcome, float]] = {
    "503": (answered(503), 30),
    "500": (answered(500), 60),
    "refused connections": (failed(FailureKind.CONNECT), 60),
    "lost names": (failed(FailureKind.NAME_RESOLUTION), 60),
}


@dataclass
class Site:
    """One origin and what a checker would know about it, without a checker."""

    policy: Policy
    outcome: Outcome
    entry: Entry | None = None
    origin: str = ORIGIN

    def ask(self, now: float) -> bool:
        """Do what a check does; whether it made an attempt."""
        if plan(self.entry, now) is Plan.USE:
            return False
        self.entry = entry_after(
            self.entry, self.outcome, origin=self.origin, now=now, policy=self.policy
        )
        return True

    def effect(self, now: float) -> Effect:
        assert self.entry is not None
        return ruling(self.entry, now=now, policy=self.policy).effect

    def is_allowed(self, url: str, now: float) -> bool:
        assert self.entry is not None
        return answer(self.entry, url, now=now, policy=self.policy).allowed


def hours_of_attempts(initial: float, origin: str = ORIGIN) -> list[int]:
    """When an hourly caller makes attempts, in hours from the first failure."""
    hours: list[int] = []
    due = 0.0
    for hour in range(HOURS_OF_OUTAGE):
        if hour * HOUR >= due:
            hours.append(hour)
            due = hour * HOUR + pause(len(hours), initial, origin)
    return hours


def pause(failures: int, initial: float, origin: str = ORIGIN) -> float:
    jitter = zlib.crc32(origin.encode()) / 2**32 / 10
    return min(initial * 2.0 ** (failures - 1), HOUR) * (1 + jitter)


def phases(effects: list[Effect]) -> Phases:
    runs = [(effect, len(list(run))) for effect, run in groupby(effects)]
    ends = [sum(length for _, length in runs[: i + 1]) for i in range(len(runs))]
    return [(effect, end) for (effect, _), end in zip(runs, ends, strict=True)]


@pytest.mark.parametrize("outage", OUTCOMES)
@pytest.mark.parametrize("preset", PRESETS)
def test_hourly_caller_sees_the_phases_and_the_schedule(
    preset: str, outage: str
) -> None:
    outcome, initial = OUTCOMES[outage]
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    good_hours = [site.ask(NOW + hour * HOUR) for hour in range(24)]

    site.outcome = outcome
    attempts, effects = [], []
    for hour in range(HOURS_OF_OUTAGE):
        now = NOW + DAY + hour * HOUR
        if site.ask(now):
            attempts.append(hour)
        effects.append(site.effect(now))

    assert not any(good_hours)
    assert phases(effects) == WITH_A_COPY[preset]
    assert attempts == hours_of_attempts(initial)


def test_hourly_caller_makes_this_many_attempts() -> None:
    """The closed form in numbers: hourly while pauses are short, then every other.

    Seven (503) or six pauses are shorter than an hour, jitter included.
    """
    last = HOURS_OF_OUTAGE - 1

    assert hours_of_attempts(30) == [*range(8), *range(9, last + 1, 2)]
    assert hours_of_attempts(60) == [*range(7), *range(8, last + 1, 2)]


@pytest.mark.parametrize("preset", PRESETS)
def test_origin_never_seen_before_goes_through_an_outage(preset: str) -> None:
    site = Site(policy=PRESETS[preset], outcome=answered(503))

    attempts, effects = [], []
    for hour in range(HOURS_OF_OUTAGE):
        now = NOW + hour * HOUR
        if site.ask(now):
            attempts.append(hour)
        effects.append(site.effect(now))

    assert phases(effects) == WITHOUT_A_COPY[preset]
    assert attempts == hours_of_attempts(30)


@pytest.mark.parametrize("preset", PRESETS)
def test_impatient_caller_makes_the_attempts_of_the_schedule(preset: str) -> None:
    """Who asks all the time makes an attempt at each moment that is due."""
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    site.outcome = answered(503)
    end = DAYS_OF_OUTAGE * DAY

    found, now = [], NOW + DAY
    while now < NOW + DAY + end:
        assert site.ask(now)
        found.append(now - NOW - DAY)
        assert site.entry is not None
        now = site.entry.next_fetch_at

    expected = [0.0]
    while (due := expected[-1] + pause(len(expected), 30)) < end:
        expected.append(due)
    assert found == pytest.approx(expected, abs=0.01)
    assert len(found) == len(expected)


@pytest.mark.parametrize("preset", PRESETS)
def test_rules_decide_while_and_only_while_they_are_in_force(preset: str) -> None:
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    site.outcome = answered(503)

    for hour in range(HOURS_OF_OUTAGE):
        now = NOW + DAY + hour * HOUR
        site.ask(now)
        effect = site.effect(now)

        assert site.is_allowed(PUBLIC, now) is (effect is not Effect.DISALLOW)
        assert site.is_allowed(PRIVATE, now) is (effect is Effect.ALLOW)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("hour", [0, 11, 13, 719, 721, HOURS_OF_OUTAGE])
def test_origin_that_comes_back_is_ruled_by_its_new_file(
    preset: str, hour: int
) -> None:
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    site.outcome = answered(503)
    for each in range(hour):
        site.ask(NOW + DAY + each * HOUR)

    site.outcome = answered(body=b"User-agent: *\nDisallow: /public")
    assert site.entry is not None
    back = max(NOW + DAY + hour * HOUR, site.entry.next_fetch_at)
    site.ask(back)

    assert not site.is_allowed(PUBLIC, back)
    assert site.is_allowed(PRIVATE, back)
    assert site.entry.unreachable_since is None
    assert not any(site.ask(back + each * HOUR) for each in range(24))


@pytest.mark.parametrize("preset", PRESETS)
def test_retry_after_sets_the_pace_of_an_outage(preset: str) -> None:
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    site.outcome = answered(503, retry_after=str(6 * 3_600))

    attempts = [
        hour for hour in range(HOURS_OF_OUTAGE) if site.ask(NOW + DAY + hour * HOUR)
    ]

    assert attempts == list(range(0, HOURS_OF_OUTAGE, 6))


@pytest.mark.parametrize("preset", PRESETS)
def test_flapping_origin_never_comes_to_the_end_of_its_window(preset: str) -> None:
    """Up for an hour each week, so no outage is as long as the window."""
    site = Site(policy=PRESETS[preset], outcome=answered(cache_control="max-age=60"))

    effects = set()
    for hour in range(20 * 7 * 24):
        is_up = hour % 168 in {0, 1}
        site.outcome = answered(cache_control="max-age=60") if is_up else answered(503)
        now = NOW + hour * HOUR
        site.ask(now)
        effects.add(site.effect(now))

    assert Effect.ALLOW not in effects


@pytest.mark.parametrize("preset", PRESETS)
def test_refused_origin_is_disallowed_for_ever_and_asked_rarely(preset: str) -> None:
    site = Site(policy=PRESETS[preset], outcome=answered())
    site.ask(NOW)
    site.outcome = refused()

    attempts, effects = 0, set()
    for hour in range(100 * 24):
        now = NOW + DAY + hour * HOUR
        attempts += site.ask(now)
        effects.add(site.effect(now))

    assert effects == {Effect.REFUSE}
    assert attempts <= 100 * 24 / 2 + 10


def test_origins_that_fail_together_are_not_asked_together() -> None:
    policy = PRESETS["default"]
    sites = [
        Site(policy=policy, outcome=answered(503), origin=f"https://host{n}.example")
        for n in range(500)
    ]
    for site in sites:
        site.ask(NOW)

    due = {site.entry.next_fetch_at for site in sites if site.entry}

    assert len(due) > 490
    assert all(NOW + 30 <= moment < NOW + 33 for moment in due)
