from __future__ import annotations

import pytest

from robotsgate import AccessResult, Dialect, Policy, Reason, RobotsTxt
from robotsgate.caching._entry import Outage
from robotsgate.caching._live import RULES_WITHOUT_FILE, Standing, StandingFor
from robotsgate.caching._question import Agent, Question
from robotsgate.caching._verdict import Effect
from robotsgate.robotstxt._dialect import grammar_of
from tests.checking.builders import AGENT, DAY, HOUR, NOW, ORIGIN, RULES, entry_of

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
        robots_txt = RobotsTxt.parse(standing.body)
        return StandingFor(standing, robots_txt.rules_for(Agent.of(AGENT).tokens))
    return StandingFor(standing, RULES_WITHOUT_FILE[standing.effect])


@pytest.mark.parametrize(
    ("access", "answers"),
    [
        pytest.param(AccessResult.SUCCESSFUL, (True, False, True), id="a file"),
        pytest.param(AccessResult.UNAVAILABLE, (True, True, True), id="no file"),
        pytest.param(AccessResult.RESTRICTED, (False, False, True), id="restricted"),
        pytest.param(AccessResult.REFUSED, (False, False, False), id="refused"),
    ],
)
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


def test_standing_is_usable_until_its_phase_ends() -> None:
    standing = standing_of()

    moments = [NOW - 0.001, NOW, NOW + DAY - 0.001, NOW + DAY]

    assert [standing.is_usable(now) for now in moments] == [False, True, True, False]


def test_body_is_the_file_that_applies() -> None:
    standing = standing_of()

    assert standing.body == RULES.encode()
    assert standing.body_at_once is standing.body_at_once
    assert standing.weight == standing.weight_of_body > 0


@pytest.mark.parametrize("access", [AccessResult.UNAVAILABLE, AccessResult.REFUSED])
def test_standing_without_a_file_has_no_body(access: AccessResult) -> None:
    standing = standing_of(access)

    assert (standing.body, standing.body_at_once, standing.weight) == (b"", b"", 0)


def test_copy_that_does_not_apply_is_not_the_body() -> None:
    outage = Outage(
        since=NOW, last_attempt_at=NOW, retry_at=NOW + HOUR, attempts=1, status=503
    )
    entry = entry_of(answered_at=NOW - 2 * DAY, outage=outage)

    standing = Standing(entry, now=NOW, policy=Policy(stale_window=0))

    assert (standing.effect, standing.body) == (Effect.DISALLOW, b"")


def test_new_body_is_not_decompressed_until_it_is_forgotten() -> None:
    new_body = b"User-agent: *\n"
    standing = Standing(entry_of(), now=NOW, policy=Policy(), new_body=new_body)

    before = standing.body_at_once
    standing.forget_body()

    assert before is new_body
    assert standing.body_at_once == RULES.encode()
