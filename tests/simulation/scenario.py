"""The steps of a simulation, generated from a seed before it begins.

Steps are values, so that a failing list can be printed, shortened and run again.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from tests.caching.builders import DAY, HOUR, MINUTE, PRESETS

from .answers import PLAIN, RULEBOOKS, random_answer, random_outage
from .policies import random_policy
from .randomness import rng_for
from .store import Mood

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from robotsgate import Policy

    from .answers import Answer

WEEK = 7 * DAY
YEAR = 365 * DAY

HOSTS = ("one.test", "two.test", "three.test")
PATHS = ("/public", "/private", "/robots.txt")


class Action(enum.Enum):
    """The method that a caller calls."""

    CAN_FETCH = "can_fetch"
    CHECK = "check"
    CHECK_TWICE = "check, then can_fetch and peek"
    MANY = "can_fetch_many"
    PEEK = "peek"
    PREFETCH = "prefetch"
    REFRESH = "refresh"
    FORGET = "forget"
    CRAWL_DELAY = "crawl_delay"
    ROBOTS_TXT = "robots_txt"


class Advance(NamedTuple):
    """Advance the clock by `seconds`."""

    seconds: float


class AdvanceToTransition(NamedTuple):
    """Advance the clock to a time when `host` changes state, plus `offset`."""

    host: str
    number: int
    offset: float


class Jump(NamedTuple):
    """Set the clock forward or back by `seconds`."""

    seconds: float


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
    """Replace the checker with a new one that uses the same store.

    `overrides` contains pairs of a host and the name of its override in `RULEBOOKS`.
    """

    name: str
    policy: Policy
    max_origins: int = 10_000
    max_concurrent_fetches: int = 100
    overrides: tuple[tuple[str, str], ...] = ()


class SetMood(NamedTuple):
    """Change the mood of the store."""

    mood: Mood


class LoseEntry(NamedTuple):
    """Make the store lose its entries for `host`."""

    host: str


Step = (
    Advance
    | AdvanceToTransition
    | Jump
    | Change
    | Calls
    | Restart
    | SetMood
    | LoseEntry
)


def scenario(seed: int, steps: int) -> list[tuple[int, Step]]:
    """The numbered steps of `seed`; the number salts their randomness."""
    rng = rng_for("scenario", seed)
    name, policy = list(PRESETS.items())[seed % len(PRESETS)]
    if seed % 4 == 3:
        name, policy = random_policy(rng)
    has_bad_store = seed % 3 == 2
    has_jumps = seed % 2 == 1
    makers, weights = zip(
        *_makers(has_bad_store=has_bad_store, has_jumps=has_jumps), strict=True
    )
    result: list[Step] = [Restart(name=name, policy=policy)]
    result += [Change(host=host, answer=random_answer(rng)) for host in HOSTS]
    while len(result) < steps:
        maker = rng.choices(makers, weights)[0]
        result += maker(rng)
    return list(enumerate(result[:steps]))


def _makers(
    *, has_bad_store: bool, has_jumps: bool
) -> list[tuple[Callable[[Random], list[Step]], int]]:
    """Functions that make steps, with their weights."""
    return [
        (_advance, 20),
        (_advance_to_transition, 12),
        (_jump, 2 if has_jumps else 0),
        (_change, 14),
        (_outage, 3),
        (_call_alone, 36),
        (_call_concurrently, 12),
        (_call_slowly, 4),
        (_restart, 3),
        (_set_mood, 6 if has_bad_store else 0),
        (_lose_entry, 2 if has_bad_store else 0),
    ]


def _advance(rng: Random) -> list[Step]:
    longest = rng.choice([MINUTE, HOUR, DAY, DAY, WEEK, WEEK, 5 * WEEK])
    return [Advance(seconds=float(rng.randrange(1, int(longest))))]


def _advance_to_transition(rng: Random) -> list[Step]:
    return [_transition_of(rng, rng.choice(HOSTS))]


def _transition_of(rng: Random, host: str) -> Step:
    offset = rng.choice([-1.0, 0.0, 0.0, 1.0])
    return AdvanceToTransition(host=host, number=rng.randrange(5), offset=offset)


def _jump(rng: Random) -> list[Step]:
    longest = rng.choice([HOUR, WEEK, YEAR, 20 * YEAR])
    seconds = float(rng.randrange(1, int(longest)))
    return [Jump(seconds=rng.choice([-1, 1]) * seconds)]


def _change(rng: Random) -> list[Step]:
    return [_change_of(rng, rng.choice(HOSTS))]


def _change_of(rng: Random, host: str) -> Step:
    return Change(host=host, answer=random_answer(rng))


def _outage(rng: Random) -> list[Step]:
    """An origin serves rules, then perhaps something else, then has a long outage."""
    host = rng.choice(HOSTS)
    rules = rng.choice(list(PLAIN.values()))
    result: list[Step] = [Change(host=host, answer=rules), _check(rng, host)]
    if rng.random() < 0.5:
        result += [_transition_of(rng, host), _change_of(rng, host)]
        result += [_check(rng, host)]
    result += [_transition_of(rng, host), Change(host=host, answer=random_outage(rng))]
    for _ in range(rng.randint(1, 6)):
        result += [_check(rng, host)]
        result += _advance(rng) if rng.random() < 0.3 else [_transition_of(rng, host)]
    return [*result, _check(rng, host)]


def _check(rng: Random, host: str) -> Step:
    path = rng.choice(PATHS[:2])
    return Calls(callers=(Caller(action=Action.CHECK, hosts=(host,), path=path),))


_ACTIONS = {
    Action.CAN_FETCH: 6,
    Action.CHECK: 8,
    Action.CHECK_TWICE: 8,
    Action.MANY: 3,
    Action.PEEK: 2,
    Action.PREFETCH: 2,
    Action.REFRESH: 2,
    Action.FORGET: 1,
    Action.CRAWL_DELAY: 2,
    Action.ROBOTS_TXT: 2,
}
_ABOUT_MANY = (Action.MANY, Action.PREFETCH)


def _caller(rng: Random, hosts: tuple[str, ...]) -> Caller:
    action = rng.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]
    number = rng.randint(1, len(hosts)) if action in _ABOUT_MANY else 1
    return Caller(
        action=action,
        hosts=tuple(rng.sample(hosts, number)),
        path=rng.choice(PATHS + PATHS[:2] * 2),
    )


def _call_alone(rng: Random) -> list[Step]:
    return [Calls(callers=(_caller(rng, HOSTS),))]


def _call_concurrently(rng: Random) -> list[Step]:
    hosts = HOSTS if rng.random() < 0.5 else (rng.choice(HOSTS),)
    return [Calls(callers=_callers(rng, hosts))]


def _call_slowly(rng: Random) -> list[Step]:
    """Uses only one origin, so that the end of each attempt is known."""
    hosts = (rng.choice(HOSTS),)
    callers = _callers(rng, hosts)
    if rng.random() < 0.5:
        callers = callers[:1]
    slowness = rng.choice([1.0, 25.0, HOUR, 3 * DAY, -1.0, -HOUR, -40 * DAY])
    return [Calls(callers=callers, slowness=slowness)]


def _callers(rng: Random, hosts: tuple[str, ...]) -> tuple[Caller, ...]:
    return tuple(
        _caller(rng, hosts)._replace(
            starts_after=rng.choice([0, 0, 0, 1, 2, 5]),
            cancelled_after=rng.randrange(12) if rng.random() < 0.3 else None,
        )
        for _ in range(rng.randint(2, 7))
    )


def _restart(rng: Random) -> list[Step]:
    name, policy = random_policy(rng)
    overridden = rng.choice([(), (), HOSTS[:1], HOSTS[1:]])
    restart = Restart(
        name=name,
        policy=policy,
        max_origins=rng.choice([10_000, 10_000, 1]),
        max_concurrent_fetches=rng.choice([100, 100, 1]),
        overrides=tuple((host, rng.choice(list(RULEBOOKS))) for host in overridden),
    )
    return [restart]


def _set_mood(rng: Random) -> list[Step]:
    return [SetMood(mood=rng.choice([Mood.WELL, Mood.WELL, *Mood]))]


def _lose_entry(rng: Random) -> list[Step]:
    return [LoseEntry(host=rng.choice(HOSTS))]
