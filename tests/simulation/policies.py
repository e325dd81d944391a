"""The policies of the simulation: every preset, and random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate import AccessResult, AfterUnreachableLimit, Policy
from tests.caching.builders import DAY, HOUR, MINUTE, PRESETS

if TYPE_CHECKING:
    from random import Random

_CLOSED = [AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE]


def random_policy(chance: Random) -> tuple[str, Policy]:
    """A policy with its name: a preset more often than not."""
    if chance.random() < 0.6:
        return chance.choice(list(PRESETS.items()))
    shortest = chance.choice([0.0, MINUTE, HOUR])
    first_retry = chance.choice([1.0, MINUTE, HOUR])
    return "a random policy", Policy(
        default_lifetime=chance.choice([0.0, MINUTE, DAY, 30 * DAY]),
        min_lifetime=shortest,
        max_lifetime=shortest + chance.choice([0.0, DAY, 60 * DAY]),
        stale_window=chance.choice([0.0, HOUR, DAY, 30 * DAY, 50 * DAY]),
        unreachable_limit=chance.choice([0.0, DAY, 30 * DAY]),
        unreachable_limit_without_copy=chance.choice([None, HOUR, 3 * DAY]),
        days_of_evidence=chance.choice([1, 2, 5]),
        outage_grace=chance.choice([0.0, HOUR, 2 * DAY]),
        after_unreachable_limit=chance.choice(list(AfterUnreachableLimit)),
        retry_initial=first_retry,
        retry_factor=chance.choice([1.0, 1.5, 1e9]),
        retry_max=first_retry + chance.choice([30.0, DAY]),
        retry_initial_503=chance.choice([0.5, 30.0]),
        retry_after_max=first_retry + chance.choice([0.0, 5 * DAY]),
        max_redirects=chance.choice([1, 5]),
        detect_missing_page=chance.random() < 0.5,
        on_access_denied=chance.choice(_CLOSED),
        on_too_many_requests=chance.choice(_CLOSED),
        on_too_many_redirects=chance.choice(_CLOSED),
    )
