"""The steps of a simulation, generated from a seed before it begins."""

from __future__ import annotations

import enum
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult, AfterUnreachableLimit, Policy
from tests.caching.builders import DAY, HOUR, MINUTE, PRESETS

from .network import PATHS, RULEBOOKS, random_answer, random_outage

if TYPE_CHECKING:
    from .network import Answer

HOSTS = ("one.test", "two.test", "three.test")
_RESULTS = [AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.UNREACHABLE]


class Action(enum.Enum):
    """The method that a caller calls."""

    CAN_FETCH = "can_fetch"
    CHECK = "check"
    MANY = "can_fetch_many"
    PREFETCH = "prefetch"
    REFRESH = "refresh"
    FORGET = "forget"


_WEIGHTS = [6, 16, 3, 2, 2, 1]


class Advance(NamedTuple):
    """Advance the clock by `seconds`."""

    seconds: float


class AdvanceToTransition(NamedTuple):
    """Advance the clock to the next time when `host` changes, plus `offset`."""

    host: str
    offset: float


class Change(NamedTuple):
    """Change the answer of `host`."""

    host: str
    answer: Answer


class Caller(NamedTuple):
    """A task with one call; it starts and is cancelled after some checkpoints."""

    action: Action
    hosts: tuple[str, ...]
    path: str
    starts_after: int = 0
    cancelled_after: int | None = None


class Calls(NamedTuple):
    """Run callers concurrently; each request moves the clock by `slowness` seconds."""

    callers: tuple[Caller, ...]
    slowness: float = 0.0


class Restart(NamedTuple):
    """Replace the checker with a new one that uses the same store."""

    policy: Policy
    max_origins: int = 10_000
    max_concurrent_fetches: int = 100
    overrides: tuple[tuple[str, bytes], ...] = ()


Step = Advance | AdvanceToTransition | Change | Calls | Restart


def scenario(seed: int, steps: int) -> list[Step]:
    """The steps of `seed`."""
    rng = Random(f"scenario/{seed}")  # noqa: S311 (reproducible, not secret)
    makers = {
        _advance: 20,
        _advance_to_transition: 12,
        _change: 14,
        _outage: 3,
        _call: 40,
        _call_concurrently: 12,
        _restart: 3,
    }
    result: list[Step] = [Restart(policy=list(PRESETS.values())[seed % len(PRESETS)])]
    result += [Change(host, random_answer(rng)) for host in HOSTS]
    while len(result) < steps:
        result += rng.choices(list(makers), list(makers.values()))[0](rng)
    return result[:steps]


def _advance(rng: Random) -> list[Step]:
    longest = rng.choice([MINUTE, HOUR, DAY, DAY, 7 * DAY, 7 * DAY, 35 * DAY])
    return [Advance(float(rng.randrange(1, int(longest))))]


def _advance_to_transition(rng: Random, host: str = "") -> list[Step]:
    offset = rng.choice([-1.0, 0.0, 0.0, 1.0])
    return [AdvanceToTransition(host or rng.choice(HOSTS), offset)]


def _change(rng: Random) -> list[Step]:
    return [Change(rng.choice(HOSTS), random_answer(rng))]


def _outage(rng: Random) -> list[Step]:
    """An origin serves something, then has a long outage."""
    host = rng.choice(HOSTS)
    result: list[Step] = [Change(host, random_answer(rng)), _check(host)]
    result += [*_advance_to_transition(rng, host), Change(host, random_outage(rng))]
    for _ in range(rng.randint(1, 6)):
        result += [_check(host)]
        is_random = rng.random() < 0.3
        result += _advance(rng) if is_random else _advance_to_transition(rng, host)
    return [*result, _check(host)]


def _check(host: str) -> Step:
    return Calls(callers=(Caller(Action.CHECK, (host,), PATHS[0]),))


def _caller(rng: Random, hosts: tuple[str, ...], *, may_forget: bool = True) -> Caller:
    count = len(Action) - (not may_forget)  # the last action is to forget
    action = rng.choices(list(Action)[:count], _WEIGHTS[:count])[0]
    is_about_many = action in {Action.MANY, Action.PREFETCH}
    number = rng.randint(1, len(hosts)) if is_about_many else 1
    return Caller(action, tuple(rng.sample(hosts, number)), rng.choice(PATHS))


def _call(rng: Random) -> list[Step]:
    if rng.random() < 0.9:
        return [Calls(callers=(_caller(rng, HOSTS),))]
    callers = (_caller(rng, (rng.choice(HOSTS),)),)
    return [Calls(callers, slowness=rng.choice([1.0, 25.0, HOUR, 3 * DAY]))]


def _call_concurrently(rng: Random) -> list[Step]:
    hosts = HOSTS if rng.random() < 0.5 else (rng.choice(HOSTS),)
    callers = tuple(
        _caller(rng, hosts, may_forget=False)._replace(
            starts_after=rng.choice([0, 0, 0, 1, 2, 5]),
            cancelled_after=rng.randrange(12) if rng.random() < 0.3 else None,
        )
        for _ in range(rng.randint(2, 7))
    )
    return [Calls(callers)]


def _restart(rng: Random) -> list[Step]:
    overridden = rng.choice([(), (), HOSTS[:1], HOSTS[1:]])
    restart = Restart(
        policy=_random_policy(rng),
        max_origins=rng.choice([10_000, 10_000, 1]),
        max_concurrent_fetches=rng.choice([100, 100, 1]),
        overrides=tuple((host, rng.choice(list(RULEBOOKS))) for host in overridden),
    )
    return [restart]


def _random_policy(rng: Random) -> Policy:
    """A preset more often than not."""
    if rng.random() < 0.6:
        return rng.choice(list(PRESETS.values()))
    shortest = rng.choice([0.0, MINUTE, HOUR])
    return Policy(
        default_lifetime=rng.choice([0.0, MINUTE, DAY, 30 * DAY]),
        min_lifetime=shortest,
        max_lifetime=shortest + rng.choice([0.0, DAY, 60 * DAY]),
        stale_window=rng.choice([0.0, HOUR, DAY, 30 * DAY, 50 * DAY]),
        unreachable_limit=rng.choice([0.0, DAY, 30 * DAY]),
        unreachable_limit_without_copy=rng.choice([None, HOUR, 3 * DAY]),
        days_of_evidence=rng.choice([1, 2, 5]),
        outage_grace=rng.choice([0.0, HOUR, 2 * DAY]),
        after_unreachable_limit=rng.choice(list(AfterUnreachableLimit)),
        retry_factor=rng.choice([1.0, 1.5, 1e9]),
        max_redirects=rng.choice([1, 5]),
        detect_missing_page=rng.random() < 0.5,
        on_access_denied=rng.choice(_RESULTS),
        on_too_many_requests=rng.choice(_RESULTS),
        on_too_many_redirects=rng.choice(_RESULTS),
    )
