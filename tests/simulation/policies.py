"""Policies for the simulation: presets and random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate import AccessResult, AfterUnreachableLimit, Policy
from tests.caching.builders import DAY, HOUR, MINUTE, PRESETS

if TYPE_CHECKING:
    from random import Random

_RESULTS = [AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE]


def random_policy(rng: Random) -> tuple[str, Policy]:
    """A policy and its name: a preset more often than not."""
    if rng.random() < 0.6:
        return rng.choice(list(PRESETS.items()))
    shortest = rng.choice([0.0, MINUTE, HOUR])
    first_retry = rng.choice([1.0, MINUTE, HOUR])
    return "a random policy", Policy(
        default_lifetime=rng.choice([0.0, MINUTE, DAY, 30 * DAY]),
        min_lifetime=shortest,
        max_lifetime=shortest + rng.choice([0.0, DAY, 60 * DAY]),
        stale_window=rng.choice([0.0, HOUR, DAY, 30 * DAY, 50 * DAY]),
        unreachable_limit=rng.choice([0.0, DAY, 30 * DAY]),
        unreachable_limit_without_copy=rng.choice([None, HOUR, 3 * DAY]),
        days_of_evidence=rng.choice([1, 2, 5]),
        outage_grace=rng.choice([0.0, HOUR, 2 * DAY]),
        after_unreachable_limit=rng.choice(list(AfterUnreachableLimit)),
        retry_initial=first_retry,
        retry_factor=rng.choice([1.0, 1.5, 1e9]),
        retry_max=first_retry + rng.choice([30.0, DAY]),
        retry_initial_503=rng.choice([0.5, 30.0]),
        retry_after_max=first_retry + rng.choice([0.0, 5 * DAY]),
        max_redirects=rng.choice([1, 5]),
        detect_missing_page=rng.random() < 0.5,
        on_access_denied=rng.choice(_RESULTS),
        on_too_many_requests=rng.choice(_RESULTS),
        on_too_many_redirects=rng.choice(_RESULTS),
    )
