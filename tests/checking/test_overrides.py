"""Origins with a robots.txt supplied by the caller, which are never fetched."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate import (
    AccessResult,
    Dialect,
    InvalidURLError,
    Reason,
    RobotsChecker,
    RobotsTxt,
    Rule,
    Verdict,
)
from robotsgate.robotstxt import RuleKind
from robotsgate.testing import ManualClock
from tests.tables import cases

from .builders import (
    AGENT,
    DAY,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    FailingStore,
    answered_at_once,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from robotsgate.testing import FakeSite

pytestmark = pytest.mark.anyio

OWN = "User-agent: *\nCrawl-delay: 7\nDisallow: /public\nSitemap: https://e.org/map\n"
BY_OVERRIDE = Verdict(
    allowed=False,
    url=PUBLIC,
    agent=AGENT,
    reason=Reason.OVERRIDDEN,
    rule=Rule(kind=RuleKind.DISALLOW, pattern="/public", line=3),
    group="*",
    access=AccessResult.SUCCESSFUL,
    is_stale=False,
    origin=ORIGIN,
    status=None,
    redirects=(),
    error=None,
    fetched_at=None,
    fresh_until=None,
)


@pytest.fixture
def site() -> FakeSite:
    return site_of(RULES)


def overridden(site: FakeSite, **arguments: Any) -> RobotsChecker:  # noqa: ANN401 (RobotsChecker's arguments)
    """A checker with `OWN` for `ORIGIN`, and with a store that fails."""
    store = FailingStore("get", "update")
    return checker_of(site, store=store, overrides={ORIGIN: OWN}, **arguments)


@pytest.mark.parametrize(
    "file", [OWN, OWN.encode(), RobotsTxt.parse(OWN)], ids=["str", "bytes", "RobotsTxt"]
)
@pytest.mark.parametrize("key", [ORIGIN, f"{ORIGIN}:443/page?x"], ids=["origin", "URL"])
async def test_override_applies_only_to_its_origin(
    site: FakeSite, key: str, file: str | bytes | RobotsTxt
) -> None:
    checker = checker_of(site, overrides={key: file})

    answers = await checker.can_fetch_many(AGENT, [PUBLIC, PRIVATE, OTHER_ORIGIN])

    assert answers == [False, True, True]
    assert site.requests == [f"{OTHER_ORIGIN}/robots.txt"]


async def test_no_method_fetches_an_origin_with_an_override(site: FakeSite) -> None:
    checker = overridden(site)

    peeked = [checker.peek(AGENT, url) for url in (PUBLIC, PRIVATE, ROBOTS_TXT)]
    answers = await checker.can_fetch_many(AGENT, [PUBLIC, PRIVATE, ROBOTS_TXT])
    await checker.prefetch([PUBLIC])
    await checker.refresh(PUBLIC)
    await checker.forget(PUBLIC)
    facts = (await checker.crawl_delay(AGENT, PUBLIC), await checker.sitemaps(PUBLIC))

    assert peeked == answers == [False, True, True]
    assert await checker.check(AGENT, PUBLIC) == BY_OVERRIDE
    assert facts == (7.0, ("https://e.org/map",))
    assert await checker.request_rate(AGENT, PUBLIC) is None
    assert site.requests == []
    stats = checker.stats
    assert (stats.checks, stats.fetches, stats.live_origins) == (7, 0, 1)


async def test_parsed_override_is_returned_unchanged(site: FakeSite) -> None:
    file = RobotsTxt.parse(OWN, max_bytes=None)

    checker = checker_of(site, overrides={ORIGIN: file})

    assert await checker.robots_txt(PUBLIC) is file


@cases("file path changes", {
    "no rule matches": (OWN, "/private", {"group": "*"}),
    "the file itself":
        (OWN, "/robots.txt", {"group": "*", "reason": Reason.ROBOTS_TXT}),
    "an empty file": (b"", "/private", {"group": None}),
})  # fmt: skip
async def test_verdict_shows_that_it_comes_from_the_override(
    site: FakeSite, file: str | bytes, path: str, changes: dict[str, Any]
) -> None:
    checker = checker_of(site, overrides={ORIGIN: file})

    verdict = await checker.check(AGENT, ORIGIN + path)

    allowed = replace(BY_OVERRIDE, allowed=True, rule=None, url=ORIGIN + path)
    assert verdict == replace(allowed, **changes)


async def test_override_applies_at_any_time_and_after_any_eviction(
    site: FakeSite,
) -> None:
    clock = ManualClock()
    checker = overridden(site, max_origins=1, clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)

    for seconds in (1_000 * DAY, -2_000 * DAY):
        clock.set(clock.now() + seconds)
        assert answered_at_once(checker.can_fetch(AGENT, PUBLIC)) is False
        await checker.can_fetch(AGENT, OTHER_ORIGIN)
        assert answered_at_once(checker.can_fetch(AGENT, PUBLIC)) is False


async def test_origin_that_cannot_be_fetched_can_have_an_override(
    site: FakeSite,
) -> None:
    checker = checker_of(site, overrides={"ftp://example.com": OWN})

    await checker.refresh("ftp://example.com")

    assert await checker.can_fetch(AGENT, "ftp://example.com/public") is False


@cases("overrides error message", {
    "not a mapping": ([ORIGIN], TypeError, "expected overrides to be a mapping"),
    "no origin": ({"example.com": OWN}, InvalidURLError, "example.com"),
    "the same origin twice": ({ORIGIN: OWN, f"{ORIGIN}/page": b""}, ValueError,
        "a single override for 'https://example.com', got two"),
    "not a file": ({ORIGIN: None}, TypeError,
        "'https://example.com' to be a RobotsTxt, bytes or str, got None"),
    "another dialect": ({ORIGIN: RobotsTxt.parse(OWN, dialect=Dialect.GOOGLE)},
        ValueError, r"Dialect\.RFC9309 for the override .*, got Dialect\.GOOGLE"),
})  # fmt: skip
def test_invalid_override_is_refused(
    site: FakeSite,
    overrides: Any,  # noqa: ANN401 (invalid on purpose)
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        checker_of(site, overrides=overrides)
