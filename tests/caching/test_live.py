"""Origins in memory: what applies to an agent, and which of them are evicted."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Dialect, Policy, Reason, RobotsTxt
from robotsgate.caching._entry import Outage
from robotsgate.caching._live import (
    MAX_BYTES_AT_ONCE,
    RULES_WITHOUT_FILE,
    LiveOrigins,
    Standing,
    StandingFor,
)
from robotsgate.caching._question import Agent, Question
from robotsgate.caching._verdict import Effect
from robotsgate.robotstxt._dialect import grammar_of
from tests.checking.builders import AGENT, DAY, HOUR, NOW, ORIGIN, RULES, entry_of
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

ROBOTS_TXT = "/robots.txt"


def standing_of(
    access: AccessResult = AccessResult.SUCCESSFUL, *, outage: Outage | None = None
) -> Standing:
    entry = entry_of(access=access, outage=outage)
    return Standing(entry, now=NOW, policy=Policy())


def question_of(target: str) -> Question:
    return Question.of(AGENT, f"{ORIGIN}{target}", grammar_of(Dialect.RFC9309))


def standing_for(standing: Standing) -> StandingFor:
    if standing.effect is Effect.RULES:
        robots_txt = RobotsTxt.parse(RULES)
        return StandingFor(standing, robots_txt.rules_for(Agent.of(AGENT).tokens))
    return StandingFor(standing, RULES_WITHOUT_FILE[standing.effect])


@cases("access answers", {
    "a file": (AccessResult.SUCCESSFUL, (True, False, True)),
    "no file": (AccessResult.UNAVAILABLE, (True, True, True)),
    "restricted": (AccessResult.RESTRICTED, (False, False, True)),
    "refused": (AccessResult.REFUSED, (False, False, False)),
})  # fmt: skip
def test_robots_txt_is_allowed_unless_its_address_was_refused(
    access: AccessResult, answers: tuple[bool, ...]
) -> None:
    standing = standing_of(access)
    agent = standing_for(standing)
    targets = ("/public", "/private", ROBOTS_TXT)

    assert tuple(agent.allows_at_once([target]) for target in targets) == answers
    assert tuple(agent.allows([target]) for target in targets) == answers
    verdicts = [
        agent.explain(standing, question_of(target), policy=Policy())
        for target in targets
    ]
    assert tuple(verdict.allowed for verdict in verdicts) == answers
    is_refused = access is AccessResult.REFUSED
    assert (verdicts[-1].reason is Reason.ADDRESS_REFUSED) is is_refused


def test_origin_weighs_as_much_as_its_compressed_file() -> None:
    standing = standing_of()

    assert standing.weight == len(standing.entry.packed) > 0
    assert standing_of(AccessResult.UNAVAILABLE).weight == 0


@pytest.mark.parametrize("extra_bytes", [0, 1])
def test_only_a_small_file_is_parsed_at_once(extra_bytes: int) -> None:
    live = origins_of()
    body = TWO_GROUPS.ljust(MAX_BYTES_AT_ONCE + extra_bytes, b"#")

    file = live.robots_txt_at_once(admitted(live, body=body))

    assert (file is None) == bool(extra_bytes)


TWO_GROUPS = b"""\
User-agent: a
User-agent: b
Disallow: /x

User-agent: *
Disallow: /y
"""
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
    live: LiveOrigins, name: str = "example.com", *, body: bytes = TWO_GROUPS
) -> Standing:
    return live.admit(entry_of(body, origin=f"https://{name}"), NOW)


def rules_of(live: LiveOrigins, standing: Standing, name: str) -> StandingFor:
    [rules] = live.rules_for(standing, [Agent.of(name)])
    return rules


def many_rules(count: int) -> bytes:
    """A file whose rules take more than 100 bytes of memory each."""
    lines = "".join(f"Disallow: /{number}\n" for number in range(count))
    return f"User-agent: *\n{lines}".encode()


def test_origin_that_is_no_longer_current_stays_live_for_its_copy() -> None:
    live = origins_of()
    admitted(live)

    live.current("https://example.com", NOW + 2 * DAY)

    assert "https://example.com" in live.by_origin


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


def discard(live: LiveOrigins, heavy: Standing) -> None:
    live.discard(heavy.entry.origin)


def replace_by_a_light_one(live: LiveOrigins, _: Standing) -> None:
    admitted(live)


@pytest.mark.parametrize("remove", [discard, replace_by_a_light_one])
def test_rules_of_an_origin_that_is_gone_do_not_count_towards_the_size(
    remove: Callable[[LiveOrigins, Standing], None],
) -> None:
    """A caller that still uses the old one must not take up space forever."""
    live = origins_of(max_origins=2)
    heavy = admitted(live, body=many_rules(2_000))
    remove(live, heavy)
    rules_of(live, heavy, "a")

    admitted(live, "one.example")
    admitted(live, "two.example")

    assert list(live.by_origin) == ["https://one.example", "https://two.example"]


def test_replaced_origin_does_not_count_towards_the_total_size() -> None:
    live = origins_of(max_origins=3)

    for _ in range(5):
        rules_of(live, admitted(live, body=many_rules(150)), "a")
    rules_of(live, admitted(live, "light.example"), "a")

    assert list(live.by_origin) == ["https://example.com", "https://light.example"]


@cases("elapsed is_current", {
    "long before it was fetched": (-300.1, False),
    "shortly before it was fetched": (-300, True),
    "when it was fetched": (0, True),
    "just before it expires": (DAY - 0.001, True),
    "when it expires": (DAY, False),
})  # fmt: skip
def test_origin_is_current_as_long_as_its_entry_is(
    elapsed: float, *, is_current: bool
) -> None:
    live = origins_of()
    standing = admitted(live)

    current = live.current("https://example.com", NOW + elapsed)

    assert (current is not None) is is_current
    assert current is None or current.entry is standing.entry


@cases("hours effects", {
    "as time passes": ([0, 1, 2, 3, 4, 5],
        [Effect.DISALLOW] * 2 + [Effect.RULES] * 2 + [Effect.DISALLOW] * 2),
    "as the clock is set back":
        ([5, 3, 1], [Effect.DISALLOW, Effect.RULES, Effect.DISALLOW]),
})  # fmt: skip
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

    assert set(live.by_agent) == set(origin.agents) == {"the next one"}
    assert origin.weight - len(origin.entry.packed) - rules.rules.weight in range(500)


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

    packed_bytes = sum(len(one.entry.packed) for one in live.by_origin.values())
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
