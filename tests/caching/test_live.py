from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Dialect, Policy, RobotsTxt
from robotsgate.caching._entry import Outage
from robotsgate.caching._live import LiveOrigins
from robotsgate.caching._question import Agent
from robotsgate.caching._verdict import Effect
from tests.checking.builders import DAY, HOUR, NOW, entry_of

if TYPE_CHECKING:
    from robotsgate.caching._live import Standing, StandingFor

RULES = b"User-agent: a\nUser-agent: b\nDisallow: /x\n\nUser-agent: *\nDisallow: /y\n"
OUTAGE = Outage(
    since=NOW,
    last_attempt_at=NOW,
    retry_at=NOW + DAY,
    attempts=1,
    evidence_since=NOW,
    last_evidence_at=NOW,
    days=1,
    status=503,
)
PHASES = Policy(outage_grace=2 * HOUR, stale_window=4 * HOUR, unreachable_limit=0)


def origins_of(*, max_origins: int = 10, policy: Policy | None = None) -> LiveOrigins:
    return LiveOrigins(
        max_origins=max_origins, policy=policy or Policy(), dialect=Dialect.RFC9309
    )


def admitted(
    live: LiveOrigins, name: str = "example.com", *, body: bytes = RULES
) -> Standing:
    return live.admit(entry_of(body, origin=f"https://{name}"), NOW)


def rules_of(live: LiveOrigins, standing: Standing, name: str) -> StandingFor:
    """What applies to an agent; parses the file if necessary."""
    agent = Agent.of(name)
    known = live.standing_for(standing, agent)
    if known is not None:
        return known
    robots_txt = live.robots_txt(standing, standing.body)
    return live.hold(standing, agent, robots_txt.rules_for(agent.tokens))


def many_rules(count: int) -> bytes:
    """A file whose rules take more than 100 bytes of memory each."""
    lines = "".join(f"Disallow: /{number}\n" for number in range(count))
    return f"User-agent: *\n{lines}".encode()


def test_origin_that_is_no_longer_current_stays_live_for_its_copy() -> None:
    live = origins_of()
    admitted(live)

    live.current("https://example.com", NOW + 2 * DAY)

    assert "https://example.com" in live.by_origin


def test_number_of_agents_per_origin_is_limited() -> None:
    live = origins_of()
    origin = admitted(live)

    for number in range(1_200):
        rules_of(live, origin, f"bot{number}")

    assert len(origin.agents) <= 1_000
    assert set(live.by_agent) == set(origin.agents)


def test_unused_origin_is_evicted_before_used_ones() -> None:
    live = origins_of(max_origins=3)
    for name in ("one", "two", "three", "four"):  # evicts "one" and clears all flags
        admitted(live, f"{name}.example")
    live.current("https://two.example", NOW)
    live.current("https://four.example", NOW)

    admitted(live, "five.example")

    assert set(live.by_origin) == {
        "https://two.example",
        "https://four.example",
        "https://five.example",
    }


def test_eviction_gives_few_second_chances_if_all_origins_are_used() -> None:
    live = origins_of(max_origins=3_000)
    for number in range(3_000):
        admitted(live, f"{number}.example")
    for origin in live.by_origin.values():
        origin.is_used = True

    admitted(live, "new.example")

    assert "https://1000.example" not in live.by_origin
    assert len(live.by_origin) == 3_000
    assert sum(origin.is_used for origin in live.by_origin.values()) == 1_999


def test_newest_origin_stays_even_if_others_use_up_the_second_chances() -> None:
    live = origins_of(max_origins=1_000)
    for number in range(1_000):
        admitted(live, f"{number}.example").is_used = True

    newest = admitted(live, "new.example")

    assert live.by_origin.get("https://new.example") is newest
    assert len(live.by_origin) == 1_000


def test_newest_origin_stays_however_heavy_it_is() -> None:
    live = origins_of(max_origins=1)
    origin = admitted(live, body=many_rules(20_000))

    rules = rules_of(live, origin, "a")

    assert list(live.by_origin) == [origin.entry.origin]
    assert rules.rules.allows("/19999x") is False


def test_heavy_origin_evicts_light_ones() -> None:
    live = origins_of(max_origins=3)
    for name in ("one", "two"):
        light = admitted(live, f"{name}.example")
        rules_of(live, light, "a")

    heavy = admitted(live, "heavy.example", body=many_rules(2_000))
    rules_of(live, heavy, "a")

    assert list(live.by_origin) == ["https://heavy.example"]


def test_replaced_origin_does_not_count_towards_the_total_size() -> None:
    live = origins_of(max_origins=3)

    for _ in range(5):
        heavy = admitted(live, body=many_rules(150))
        rules_of(live, heavy, "a")
    light = admitted(live, "light.example")
    rules_of(live, light, "a")

    assert list(live.by_origin) == ["https://example.com", "https://light.example"]


def test_rules_of_a_discarded_origin_do_not_count_towards_the_size() -> None:
    live = origins_of(max_origins=2)
    discarded = admitted(live, body=many_rules(2_000))
    live.discard(discarded.entry.origin)
    rules_of(live, discarded, "a")

    admitted(live, "one.example")
    admitted(live, "two.example")

    assert list(live.by_origin) == ["https://one.example", "https://two.example"]


def test_rules_of_a_replaced_origin_do_not_count_towards_the_size() -> None:
    """A caller that still uses the old one must not take up space forever."""
    live = origins_of(max_origins=2)
    replaced = admitted(live, body=many_rules(2_000))
    admitted(live)
    rules_of(live, replaced, "a")

    admitted(live, "one.example")
    admitted(live, "two.example")

    assert list(live.by_origin) == ["https://one.example", "https://two.example"]


@pytest.mark.parametrize(
    ("elapsed", "is_current"),
    [
        pytest.param(-300.1, False, id="long before it was fetched"),
        pytest.param(-300, True, id="shortly before it was fetched"),
        pytest.param(0, True, id="when it was fetched"),
        pytest.param(DAY - 0.001, True, id="just before it expires"),
        pytest.param(DAY, False, id="when it expires"),
    ],
)
def test_origin_is_current_as_long_as_its_entry_is(
    elapsed: float, *, is_current: bool
) -> None:
    live = origins_of()
    standing = admitted(live)

    current = live.current("https://example.com", NOW + elapsed)

    assert (current is not None) is is_current
    assert current is None or current.entry is standing.entry


@pytest.mark.parametrize(
    ("hours", "effects"),
    [
        pytest.param(
            [0, 1, 2, 3, 4, 5],
            [Effect.DISALLOW] * 2 + [Effect.RULES] * 2 + [Effect.DISALLOW] * 2,
            id="as time passes",
        ),
        pytest.param(
            [5, 3, 1],
            [Effect.DISALLOW, Effect.RULES, Effect.DISALLOW],
            id="as the clock is set back",
        ),
    ],
)
def test_phase_of_an_outage_ends_without_a_fetch(
    hours: list[float], effects: list[Effect]
) -> None:
    live = origins_of(policy=PHASES)
    live.admit(entry_of(answered_at=NOW - DAY, outage=OUTAGE), NOW)

    standings = [
        live.current("https://example.com", NOW + hour * HOUR) for hour in hours
    ]

    assert [one.effect for one in standings if one is not None] == effects
    assert len(live.by_origin) == 1


def test_agents_of_one_group_share_their_rules_but_not_their_delays() -> None:
    body = b"User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x\nCrawl-delay: 2"
    live = origins_of()
    origin = admitted(live, body=body + b"\n\nUser-agent: *\nDisallow: /y\n")

    first, second, other = (rules_of(live, origin, name) for name in "abc")

    assert first.rules is second.rules
    assert other.rules is not first.rules
    assert [one.agent_rules.group for one in (first, second, other)] == ["a", "b", "*"]
    assert first.agent_rules.crawl_delay != other.agent_rules.crawl_delay
    assert rules_of(live, origin, "a") is first


def test_robots_txt_is_allowed_in_both_dialects_whatever_an_override_says() -> None:
    file = RobotsTxt.parse("User-agent: *\nDisallow: /", dialect=Dialect.GOOGLE)
    live = LiveOrigins(
        max_origins=1,
        policy=Policy(),
        dialect=Dialect.GOOGLE,
        overrides={"https://example.com": file},
    )

    rules = rules_of(live, admitted(live), "a")

    assert rules.allows(["/robots.txt"])
    assert not file.can_fetch("a", "/robots.txt")


def test_clear_removes_everything() -> None:
    live = origins_of()
    rules_of(live, admitted(live), "a")

    live.clear()

    assert (len(live.by_origin), live.by_agent) == (0, {})


def test_rules_dropped_with_their_agents_do_not_count_towards_the_size() -> None:
    """After 1,000 agents, all are dropped, and their shared rules are parsed again."""
    live = origins_of()
    origin = admitted(live, body=b"User-agent: *\nDisallow: /x\n")

    for number in range(1_000):
        rules_of(live, origin, f"bot{number}")
    rules = rules_of(live, origin, "the next one")

    assert len(origin.agents) == 1
    assert origin.weight - origin.weight_of_body - rules.rules.weight in range(500)


@pytest.mark.parametrize("agents", [1, 2], ids=["alone", "with equal rules"])
def test_usage_lines_count_towards_the_size_for_each_agent(agents: int) -> None:
    lines = "".join(f"License: {number:0100}\n" for number in range(1_000))
    live = origins_of()
    origin = admitted(live, body=b"User-agent: *\n" + lines.encode())

    for number in range(agents):
        rules_of(live, origin, f"bot{number}")

    assert origin.weight > agents * 250_000


def test_total_size_of_all_bodies_is_limited() -> None:
    """A single body may take up 500 KiB."""
    rng = random.Random(9309)  # noqa: S311 (bodies that do not compress)
    live = origins_of(max_origins=20)

    for number in range(20):
        origin = admitted(live, f"h{number}.example", body=rng.randbytes(100_000))
        rules_of(live, origin, "a")

    packed_bytes = sum(one.weight_of_body for one in live.by_origin.values())
    assert packed_bytes <= 20 * 32 * 1024 + 101_000


@pytest.mark.parametrize(
    "access", [AccessResult.UNAVAILABLE, AccessResult.RESTRICTED, AccessResult.REFUSED]
)
def test_origins_without_a_file_share_their_rules(access: AccessResult) -> None:
    live = origins_of()
    one, other = (
        live.admit(entry_of(origin=f"https://{name}.example", access=access), NOW)
        for name in ("one", "other")
    )

    assert rules_of(live, one, "a").rules is rules_of(live, other, "b").rules
