from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Copy, Dialect, Entry, Policy
from robotsgate.caching._ruling import Effect
from robotsgate.checking._live import Agent, LiveOrigin, LiveOrigins

if TYPE_CHECKING:
    from robotsgate.robotstxt._robots_txt import AgentRules

NOW = 1_800_000_000.0
HOUR = 3_600.0
DAY = 86_400.0

RULES = b"User-agent: a\nUser-agent: b\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n"


def agent(name: str) -> Agent:
    return Agent.of(name)


def entry_of(
    origin: str = "https://example.com",
    *,
    body: bytes = RULES,
    checked_at: float = NOW,
    access: AccessResult = AccessResult.SUCCESSFUL,
) -> Entry:
    return Entry(
        origin=origin,
        access=access,
        checked_at=checked_at,
        next_fetch_at=checked_at + DAY,
        retain_until=checked_at + DAY,
        status=200,
        copy=Copy.of(body, fetched_at=checked_at, fresh_until=checked_at + DAY),
    )


def entry_in_outage(*, since: float = NOW) -> Entry:
    good = entry_of(checked_at=since - DAY)
    return Entry(
        origin=good.origin,
        access=AccessResult.UNREACHABLE,
        checked_at=since,
        next_fetch_at=since + DAY,
        retain_until=since + 31 * DAY,
        status=503,
        copy=good.copy,
        unreachable_since=since,
        failures=1,
    )


def origins_of(*, max_origins: int = 10, policy: Policy | None = None) -> LiveOrigins:
    return LiveOrigins(
        max_origins=max_origins, policy=policy or Policy(), dialect=Dialect.RFC9309
    )


def rules_of(live: LiveOrigins, origin: LiveOrigin, name: str) -> AgentRules:
    """What is in force for an agent, read if need be."""
    known = live.known_rules(origin, agent(name))
    if known is None:
        known = live.read_rules(origin, agent(name), origin.body)
    return known


def many_rules(count: int) -> bytes:
    """A file whose rules take more than 100 bytes of memory each."""
    lines = "".join(f"Disallow: /{number}\n" for number in range(count))
    return f"User-agent: *\n{lines}".encode()


def test_unknown_origin_is_not_current() -> None:
    assert origins_of().current("https://example.com", NOW) is None


@pytest.mark.parametrize(
    ("elapsed", "is_current"),
    [
        pytest.param(-0.001, False, id="before it was fetched"),
        pytest.param(0, True, id="when it was fetched"),
        pytest.param(DAY - 0.001, True, id="just before its end"),
        pytest.param(DAY, False, id="at its end"),
    ],
)
def test_origin_is_current_within_the_span_of_its_entry(
    elapsed: float, *, is_current: bool
) -> None:
    live = origins_of()
    admitted = live.admit(entry_of(), NOW)

    current = live.current("https://example.com", NOW + elapsed)

    assert current is (admitted if is_current else None)


def test_origin_that_is_no_longer_current_is_kept_for_its_copy() -> None:
    live = origins_of()
    live.admit(entry_of(), NOW)

    live.current("https://example.com", NOW + 2 * DAY)

    assert "https://example.com" in live.by_origin


def test_discarded_origin_is_held_no_longer() -> None:
    live = origins_of()
    live.admit(entry_of(), NOW)

    live.discard("https://example.com")
    live.discard("https://example.com")

    assert live.current("https://example.com", NOW) is None
    assert not live.by_origin


def test_phase_that_ended_is_ruled_anew() -> None:
    live = origins_of(policy=Policy(outage_grace=2 * HOUR, stale_window=4 * HOUR))
    live.admit(entry_in_outage(), NOW)

    effects = []
    for hour in range(6):
        current = live.current("https://example.com", NOW + hour * HOUR)
        assert current is not None
        effects.append(current.effect)

    assert effects == [
        *[Effect.DISALLOW] * 2,
        *[Effect.RULES] * 2,
        *[Effect.ALLOW] * 2,
    ]


def test_phase_of_an_earlier_time_is_ruled_anew_when_the_clock_is_set_back() -> None:
    live = origins_of(policy=Policy(outage_grace=2 * HOUR, stale_window=4 * HOUR))
    live.admit(entry_in_outage(), NOW)

    effects = []
    for hour in (5, 3, 1):
        current = live.current("https://example.com", NOW + hour * HOUR)
        assert current is not None
        effects.append(current.effect)

    assert effects == [Effect.ALLOW, Effect.RULES, Effect.DISALLOW]


def test_agents_of_one_group_share_their_rules() -> None:
    live = origins_of()
    origin = live.admit(entry_of(), NOW)

    first = rules_of(live, origin, "a")
    second = rules_of(live, origin, "b")
    other = rules_of(live, origin, "c")

    assert first.rules is second.rules
    assert (first.group, second.group, other.group) == ("a", "b", "*")
    assert other.rules is not first.rules
    assert rules_of(live, origin, "a") is first


@pytest.mark.parametrize(
    ("access", "allowed"),
    [(AccessResult.UNAVAILABLE, True), (AccessResult.RESTRICTED, False)],
)
def test_full_allow_and_full_disallow_are_shared_by_all_origins(
    access: AccessResult, *, allowed: bool
) -> None:
    live = origins_of()
    one = live.admit(entry_of("https://one.example", access=access), NOW)
    other = live.admit(entry_of("https://other.example", access=access), NOW)

    rules = rules_of(live, one, "a")

    assert rules_of(live, other, "a") is rules
    assert rules.rules.allows("/x") is allowed


def test_agents_of_an_origin_are_bounded() -> None:
    live = origins_of()
    origin = live.admit(entry_of(), NOW)

    for number in range(1_200):
        rules_of(live, origin, f"bot{number}")

    assert len(origin.agents) <= 1_000
    assert set(live.by_agent) == set(origin.agents)


def test_body_without_a_copy_is_empty() -> None:
    live = origins_of()
    missing = replace(entry_of(access=AccessResult.UNAVAILABLE), copy=None)

    body = live.admit(missing, NOW).body

    assert body == b""


def test_body_of_an_origin_whose_copy_is_not_in_force_is_empty() -> None:
    live = origins_of()

    assert live.admit(entry_of(access=AccessResult.RESTRICTED), NOW).body == b""


def test_origin_that_is_not_used_goes_before_those_that_are() -> None:
    live = origins_of(max_origins=3)
    for name in ("one", "two", "three", "four"):  # "one" goes, all lose their marks
        live.admit(entry_of(f"https://{name}.example"), NOW)
    live.current("https://two.example", NOW)
    live.current("https://four.example", NOW)

    live.admit(entry_of("https://five.example"), NOW)

    assert set(live.by_origin) == {
        "https://two.example",
        "https://four.example",
        "https://five.example",
    }


def test_newest_origin_stays_where_all_others_are_used() -> None:
    live = origins_of(max_origins=3)
    for number in range(10):
        live.admit(entry_of(f"https://{number}.example"), NOW)
        for origin in list(live.by_origin):
            live.current(origin, NOW)

    assert "https://9.example" in live.by_origin
    assert len(live.by_origin) == 3


def test_little_is_looked_at_for_a_place_where_all_origins_are_used() -> None:
    live = origins_of(max_origins=3_000)
    for number in range(3_000):
        live.admit(entry_of(f"https://{number}.example"), NOW)
    for origin in live.by_origin.values():
        origin.is_used = True

    live.admit(entry_of("https://new.example"), NOW)

    assert "https://1000.example" not in live.by_origin
    assert len(live.by_origin) == 3_000
    assert sum(origin.is_used for origin in live.by_origin.values()) == 1_999


def test_newest_origin_stays_where_all_others_use_up_the_second_chances() -> None:
    live = origins_of(max_origins=1_000)
    for number in range(1_000):
        live.admit(entry_of(f"https://{number}.example"), NOW).is_used = True

    newest = live.admit(entry_of("https://new.example"), NOW)

    assert live.by_origin.get("https://new.example") is newest
    assert len(live.by_origin) == 1_000


def test_newest_origin_stays_however_heavy_it_is() -> None:
    live = origins_of(max_origins=1)
    origin = live.admit(entry_of(body=many_rules(20_000)), NOW)

    rules = rules_of(live, origin, "a")

    assert list(live.by_origin) == [origin.entry.origin]
    assert rules.rules.allows("/19999x") is False


def test_heavy_origin_makes_light_ones_go() -> None:
    live = origins_of(max_origins=3)
    for name in ("one", "two"):
        light = live.admit(entry_of(f"https://{name}.example"), NOW)
        rules_of(live, light, "a")

    heavy = live.admit(entry_of("https://heavy.example", body=many_rules(2_000)), NOW)
    rules_of(live, heavy, "a")

    assert list(live.by_origin) == ["https://heavy.example"]


def test_origin_that_goes_takes_its_weight_with_it() -> None:
    live = origins_of(max_origins=3)

    for _ in range(5):
        heavy = live.admit(entry_of(body=many_rules(150)), NOW)
        rules_of(live, heavy, "a")
    light = live.admit(entry_of("https://light.example"), NOW)
    rules_of(live, light, "a")

    assert list(live.by_origin) == ["https://example.com", "https://light.example"]


def test_rules_of_an_origin_that_has_gone_weigh_nothing() -> None:
    live = origins_of(max_origins=2)
    gone = live.admit(entry_of(body=many_rules(2_000)), NOW)
    live.discard(gone.entry.origin)
    rules_of(live, gone, "a")

    live.admit(entry_of("https://one.example"), NOW)
    live.admit(entry_of("https://two.example"), NOW)

    assert list(live.by_origin) == ["https://one.example", "https://two.example"]


def test_rules_of_an_origin_that_was_replaced_weigh_nothing() -> None:
    """Who still holds the old one must not make room scarce for ever."""
    live = origins_of(max_origins=2)
    replaced = live.admit(entry_of(body=many_rules(2_000)), NOW)
    live.admit(entry_of(), NOW)
    rules_of(live, replaced, "a")

    live.admit(entry_of("https://one.example"), NOW)
    live.admit(entry_of("https://two.example"), NOW)

    assert list(live.by_origin) == ["https://one.example", "https://two.example"]


def test_rules_that_were_let_go_with_their_agents_weigh_nothing() -> None:
    """After 1,000 agents all are let go, and the rules they shared are read anew."""
    live = origins_of()
    origin = live.admit(entry_of(body=b"User-agent: *\nDisallow: /x\n"), NOW)

    for number in range(1_001):
        rules = rules_of(live, origin, f"bot{number}")

    assert origin.entry.copy is not None
    assert origin.weight_of_copy == len(origin.entry.copy.packed)
    assert len(origin.agents) == 1
    assert origin.weight - origin.weight_of_copy - rules.rules.weight in range(500)


def test_copies_of_all_origins_together_are_bounded() -> None:
    """`LiveOrigins`: "bounded in number and bytes"; a copy may take 500 KiB."""
    chance = random.Random(9309)  # noqa: S311 (bodies that do not compress)
    live = origins_of(max_origins=20)

    for number in range(20):
        entry = entry_of(f"https://h{number}.example", body=chance.randbytes(100_000))
        rules_of(live, live.admit(entry, NOW), "a")

    held = [origin.entry.copy for origin in live.by_origin.values()]
    packed_bytes = sum(len(copy.packed) for copy in held if copy is not None)
    assert packed_bytes <= 20 * 32 * 1024 + 101_000
