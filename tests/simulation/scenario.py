"""What happens in a simulation: a list of steps, made from a seed before it begins.

Steps are values, so that a failing list can be printed, cut down and run again.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from tests.caching.builders import DAY, HOUR, MINUTE, PRESETS

from .answers import PLAIN, RULEBOOKS, random_answer, random_outage
from .chance import chance_of
from .policies import random_policy
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
    """What a caller calls."""

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
    """The clock goes on by `seconds`."""

    seconds: float


class AdvanceToTurn(NamedTuple):
    """The clock goes on to where something changes for `host`, and `offset`."""

    host: str
    number: int
    offset: float


class Jump(NamedTuple):
    """The clock is set, `seconds` further or back."""

    seconds: float


class Change(NamedTuple):
    """`host` answers so from now on."""

    host: str
    answer: Answer


class Caller(NamedTuple):
    """One task that asks; it starts and gives up after so many checkpoints."""

    action: Action
    hosts: tuple[str, ...]
    path: str
    starts_after: int = 0
    gives_up_after: int | None = None


class Ask(NamedTuple):
    """Callers ask side by side; each request moves the clock by `slowness` seconds."""

    callers: tuple[Caller, ...]
    slowness: float = 0.0


class Restart(NamedTuple):
    """The checker goes, and another one comes, with the same store.

    `overrides` has pairs of a host that its caller speaks for, and a name from
    `RULEBOOKS`.
    """

    name: str
    policy: Policy
    max_origins: int = 10_000
    at_once: int = 100
    overrides: tuple[tuple[str, str], ...] = ()


class SetMood(NamedTuple):
    """The store works so from now on."""

    mood: Mood


class LoseEntry(NamedTuple):
    """The store loses what it has of `host`."""

    host: str


Step = Advance | AdvanceToTurn | Jump | Change | Ask | Restart | SetMood | LoseEntry


def scenario(seed: int, steps: int) -> list[tuple[int, Step]]:
    """The steps of `seed`, numbered: the number is the salt of their chance."""
    chance = chance_of("scenario", seed)
    name, policy = list(PRESETS.items())[seed % len(PRESETS)]
    if seed % 4 == 3:
        name, policy = random_policy(chance)
    has_bad_store = seed % 3 == 2
    has_jumps = seed % 2 == 1
    makers, weights = zip(
        *_makers(has_bad_store=has_bad_store, has_jumps=has_jumps), strict=True
    )
    made: list[Step] = [Restart(name=name, policy=policy)]
    made += [Change(host=host, answer=random_answer(chance)) for host in HOSTS]
    while len(made) < steps:
        maker = chance.choices(makers, weights)[0]
        made += maker(chance)
    return list(enumerate(made[:steps]))


def _makers(
    *, has_bad_store: bool, has_jumps: bool
) -> list[tuple[Callable[[Random], list[Step]], int]]:
    """How steps are made, and how often each."""
    return [
        (_advance, 20),
        (_advance_to_turn, 12),
        (_jump, 2 if has_jumps else 0),
        (_change, 14),
        (_outage, 3),
        (_ask_alone, 36),
        (_ask_at_once, 12),
        (_ask_slowly, 4),
        (_restart, 3),
        (_set_mood, 6 if has_bad_store else 0),
        (_lose_entry, 2 if has_bad_store else 0),
    ]


def _advance(chance: Random) -> list[Step]:
    longest = chance.choice([MINUTE, HOUR, DAY, DAY, WEEK, WEEK, 5 * WEEK])
    return [Advance(seconds=float(chance.randrange(1, int(longest))))]


def _advance_to_turn(chance: Random) -> list[Step]:
    return [_turn_of(chance, chance.choice(HOSTS))]


def _turn_of(chance: Random, host: str) -> Step:
    offset = chance.choice([-1.0, 0.0, 0.0, 1.0])
    return AdvanceToTurn(host=host, number=chance.randrange(5), offset=offset)


def _jump(chance: Random) -> list[Step]:
    longest = chance.choice([HOUR, WEEK, YEAR, 20 * YEAR])
    seconds = float(chance.randrange(1, int(longest)))
    return [Jump(seconds=chance.choice([-1, 1]) * seconds)]


def _change(chance: Random) -> list[Step]:
    return [_change_of(chance, chance.choice(HOSTS))]


def _change_of(chance: Random, host: str) -> Step:
    return Change(host=host, answer=random_answer(chance))


def _outage(chance: Random) -> list[Step]:
    """An origin has rules, and something else perhaps, and is down for long then."""
    host = chance.choice(HOSTS)
    rules = chance.choice(list(PLAIN.values()))
    made: list[Step] = [Change(host=host, answer=rules), _check(chance, host)]
    if chance.random() < 0.5:
        made += [_turn_of(chance, host), _change_of(chance, host)]
        made += [_check(chance, host)]
    made += [_turn_of(chance, host), Change(host=host, answer=random_outage(chance))]
    for _ in range(chance.randint(1, 6)):
        made += [_check(chance, host)]
        made += _advance(chance) if chance.random() < 0.3 else [_turn_of(chance, host)]
    return [*made, _check(chance, host)]


def _check(chance: Random, host: str) -> Step:
    path = chance.choice(PATHS[:2])
    return Ask(callers=(Caller(action=Action.CHECK, hosts=(host,), path=path),))


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


def _caller(chance: Random, hosts: tuple[str, ...]) -> Caller:
    action = chance.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]
    number = chance.randint(1, len(hosts)) if action in _ABOUT_MANY else 1
    return Caller(
        action=action,
        hosts=tuple(chance.sample(hosts, number)),
        path=chance.choice(PATHS + PATHS[:2] * 2),
    )


def _ask_alone(chance: Random) -> list[Step]:
    return [Ask(callers=(_caller(chance, HOSTS),))]


def _ask_at_once(chance: Random) -> list[Step]:
    hosts = HOSTS if chance.random() < 0.5 else (chance.choice(HOSTS),)
    return [Ask(callers=_callers(chance, hosts))]


def _ask_slowly(chance: Random) -> list[Step]:
    """About one origin only, so that it is known when each attempt ended."""
    hosts = (chance.choice(HOSTS),)
    callers = _callers(chance, hosts)
    if chance.random() < 0.5:
        callers = callers[:1]
    slowness = chance.choice([1.0, 25.0, HOUR, 3 * DAY, -1.0, -HOUR, -40 * DAY])
    return [Ask(callers=callers, slowness=slowness)]


def _callers(chance: Random, hosts: tuple[str, ...]) -> tuple[Caller, ...]:
    return tuple(
        _caller(chance, hosts)._replace(
            starts_after=chance.choice([0, 0, 0, 1, 2, 5]),
            gives_up_after=chance.randrange(12) if chance.random() < 0.3 else None,
        )
        for _ in range(chance.randint(2, 7))
    )


def _restart(chance: Random) -> list[Step]:
    name, policy = random_policy(chance)
    spoken_for = chance.choice([(), (), HOSTS[:1], HOSTS[1:]])
    restart = Restart(
        name=name,
        policy=policy,
        max_origins=chance.choice([10_000, 10_000, 1]),
        at_once=chance.choice([100, 100, 1]),
        overrides=tuple((host, chance.choice(list(RULEBOOKS))) for host in spoken_for),
    )
    return [restart]


def _set_mood(chance: Random) -> list[Step]:
    return [SetMood(mood=chance.choice([Mood.WELL, Mood.WELL, *Mood]))]


def _lose_entry(chance: Random) -> list[Step]:
    return [LoseEntry(host=chance.choice(HOSTS))]
