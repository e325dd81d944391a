"""Lookups in an archive, compared with a checker that fetches the same responses."""

from __future__ import annotations

import gzip
import math
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from robotsgate import (
    AccessResult,
    ArchivedResponse,
    Dialect,
    InvalidProductTokenError,
    InvalidURLError,
    Origin,
    Policy,
    Reason,
    RobotsArchive,
    RobotsChecker,
    RobotsTxt,
)
from robotsgate.robotstxt import Preference
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import Unreadable
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


NOW = 1_800_000_000.0
AGENT = "ExampleBot"
AGENTS = (AGENT, "GPTBot", "CCBot", "*")
ORIGIN = "https://example.com"
OTHER_ORIGIN = "https://b.example:8443"
PRIVATE = f"{ORIGIN}/private"
ROBOTS_TXT = f"{ORIGIN}/robots.txt"
RULES = b"""\
User-agent: *
Disallow: /private
Content-Usage: train-ai=n
Content-Signal: ai-train=no

User-agent: GPTBot
User-agent: CCBot
Disallow: /
"""
TYPOS = b"useragent *\ndisalow: /private\n"  # Google accepts them


def archived(
    status: int = 200, body: bytes = RULES, **headers: str
) -> ArchivedResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ArchivedResponse(status, named, body, fetched_at=NOW)


@cases("response settings", {
    "a file": (archived(), {}),
    "a file in Google's dialect": (archived(200, TYPOS), {"dialect": Dialect.GOOGLE}),
    "a file with a long line":
        (archived(200, b"#" * 511_980 + b"\nUser-agent: *\nDisallow: /\n"), {}),
    "a file over the size limit": (archived(), {"policy": Policy(max_body_bytes=30)}),
    "no file": (archived(404), {}),
    "a partial file": (archived(206), {}),
    "a bot wall": (archived(202, b"<html>"), {}),
    "restricted access": (archived(403), {"policy": Policy.strict()}),
    "a failure": (archived(503, Retry_After="7200"), {}),
    "a failure under another policy": (archived(503), {"policy": Policy.google_2021()}),
    "a missing page that says so":
        (archived(503, b"<title>404 Not Found</title>"), {}),
    "too many requests": (archived(429), {"policy": Policy.google_today()}),
    "a redirect without a Location": (archived(302), {}),
    "a redirect to FTP": (archived(302, Location="ftp://example.com/"), {}),
})  # fmt: skip
def test_archive_answers_like_a_checker_at_the_time_of_the_fetch(
    response: ArchivedResponse, settings: dict[str, Any]
) -> None:
    site = FakeSite()
    headers = [*response.headers]
    live = httpx.Response(response.status, headers=headers, content=response.body)
    site.serve(ORIGIN, live)
    archive = RobotsArchive({ORIGIN: response}, **settings)

    async def compare() -> None:
        clock = ManualClock(NOW)
        async with RobotsChecker(client=site, clock=clock, **settings) as checker:
            for agent, path in product(AGENTS, ("/", "/private?a#b", "/robots.txt")):
                url = ORIGIN + path
                verdict = await checker.check(agent, url)
                usage = await checker.usage_preferences(agent, url)
                assert archive.check(agent, url) == replace(verdict, fresh_until=None)
                assert archive.can_fetch(agent, url) is verdict.allowed
                assert archive.usage_preferences(agent, url) == usage
                refused = () if verdict.allowed else (agent,)
                assert archive.refused_agents([agent], url) == refused

    anyio.run(compare)


def chain(hops: int, *, end: ArchivedResponse | None) -> dict[str, ArchivedResponse]:
    """Origins that redirect from one to the next, `hops` times."""
    responses = {
        f"https://hop{hop}.example": archived(
            301, Location=f"https://hop{hop + 1}.example/robots.txt"
        )
        for hop in range(hops)
    }
    return responses if end is None else responses | {f"https://hop{hops}.example": end}


@cases("responses access", {
    "none": (chain(0, end=archived()), AccessResult.SUCCESSFUL),
    "five": (chain(5, end=archived()), AccessResult.SUCCESSFUL),
    "six": (chain(6, end=archived()), AccessResult.UNAVAILABLE),
    "a loop":
        (chain(2, end=archived(302, Location="https://hop0.example/robots.txt")),
         AccessResult.UNAVAILABLE),
    "to an origin that is not archived": (chain(2, end=None), AccessResult.UNREACHABLE),
    "to another file":
        (chain(1, end=archived(302, Location="/other.txt")), AccessResult.UNREACHABLE),
    "to a private address":
        ({"https://hop0.example": archived(301, Location="http://10.0.0.1/")},
         AccessResult.REFUSED),
})  # fmt: skip
def test_redirects_are_followed_within_the_archive(
    responses: dict[str, ArchivedResponse], access: AccessResult
) -> None:
    verdict = RobotsArchive(responses).check(AGENT, "https://hop0.example/private")

    assert verdict is not None
    assert verdict.access is access
    assert verdict.allowed is (access is AccessResult.UNAVAILABLE)


def test_redirects_stored_with_a_response_count_and_are_reported() -> None:
    before = tuple((f"https://hop{hop}.example/", 301) for hop in range(5))
    response = replace(archived(), redirects=before)
    further = archived(302, Location=ROBOTS_TXT)
    responses = {
        ORIGIN: response,
        "https://other.example": replace(
            further, redirects=[("https://way.example/", 308)]
        ),
    }
    archive = RobotsArchive(responses.get)

    verdict, other = (archive.check(AGENT, f"{origin}/private") for origin in responses)

    assert verdict is not None
    assert other is not None
    assert (verdict.allowed, verdict.redirects) == (False, before)
    assert (other.allowed, other.error) == (True, "more than 5 redirects")


class TestNothingArchived:
    archive = RobotsArchive(
        {ORIGIN: RULES, "https://unreadable.example": ArchivedResponse(None)}.get
    )

    @pytest.mark.parametrize("host", ["other.example", "unreadable.example"])
    def test_every_method_returns_none(self, host: str) -> None:
        url = f"https://{host}/robots.txt"

        assert self.archive.can_fetch(AGENT, url) is None
        assert self.archive.can_fetch_many(AGENT, [url]) == [None]
        assert self.archive.check(AGENT, url) is None
        assert self.archive.refused_agents(AGENTS, url) is None
        assert self.archive.usage_preferences(AGENT, url) is None

    def test_many_results_are_in_order(self) -> None:
        urls = [
            *(PRIVATE, "https://other.example/", f"{ORIGIN}/open", "mailto:a@b.c"),
            *(ROBOTS_TXT, "http://", "HTTPS://example.com/private"),
        ]

        answers = self.archive.can_fetch_many(AGENT, urls)

        assert answers == [False, None, True, False, True, False, False]


def test_bytes_are_taken_as_the_body_of_an_undated_200() -> None:
    verdict = RobotsArchive({ORIGIN: RULES}.get).check(AGENT, PRIVATE)

    assert verdict is not None
    assert verdict.reason is Reason.DISALLOWED_BY_RULE
    assert verdict.rule is not None
    assert (verdict.rule.line, verdict.status) == (2, 200)
    assert (verdict.fetched_at, verdict.fresh_until) == (None, None)


@cases("body allowed", {
    "decoded, with the header kept": (RULES, False),
    "still compressed": (gzip.compress(RULES), False),
    "compressed twice": (gzip.compress(gzip.compress(RULES)), False),
    "decoded, without rules": (b"<html>", True),
})  # fmt: skip
def test_content_coding_of_an_archived_body_is_ignored(
    *, body: bytes, allowed: bool
) -> None:
    for coding in ("gzip", "br", "UTF-8"):
        response = ArchivedResponse(200, {"Content-Encoding": coding}, body)
        archive = RobotsArchive({ORIGIN: response}.get)

        assert archive.can_fetch(AGENT, PRIVATE) is allowed


@pytest.mark.parametrize("fetched_at", [0, 1.5, NOW])
def test_verdict_has_the_responses_date(fetched_at: float) -> None:
    response = replace(archived(), fetched_at=fetched_at)

    verdict = RobotsArchive({ORIGIN: response}.get).check(AGENT, PRIVATE)

    assert verdict is not None
    assert verdict.fetched_at == fetched_at


def test_refused_agents_are_returned_as_given_and_in_order() -> None:
    archive = RobotsArchive({ORIGIN: RULES}.get)
    agents = ["CCBot/2.0", AGENT, "gptbot", "CCBot/2.0"]

    assert archive.refused_agents(agents, f"{ORIGIN}/a") == (
        *("CCBot/2.0", "gptbot", "CCBot/2.0"),
    )
    assert archive.refused_agents(iter(agents), PRIVATE) == tuple(agents)
    assert archive.refused_agents(agents, ROBOTS_TXT) == ()
    assert archive.refused_agents([], PRIVATE) == ()


def test_file_is_parsed_once_for_all_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: Counter[bytes] = Counter()
    parse = RobotsTxt.parse

    def count_and_parse(body: bytes, **arguments: Any) -> RobotsTxt:  # noqa: ANN401
        parsed[body] += 1
        return parse(body, **arguments)

    monkeypatch.setattr(RobotsTxt, "parse", count_and_parse)
    archive = RobotsArchive({ORIGIN: RULES}.get)

    for _ in range(2):
        archive.refused_agents([f"Bot{chr(97 + n)}" for n in range(20)], PRIVATE)

    assert parsed == {RULES: 1}


def test_page_headers_add_to_the_usage_preferences() -> None:
    archive = RobotsArchive({ORIGIN: b""}.get)

    usage = archive.usage_preferences(
        AGENT, PRIVATE, headers={"Content-Usage": "train-ai=n"}
    )

    assert usage is not None
    assert usage.content_usage["train-ai"].preference is Preference.DISALLOW


class TestMemory:
    @staticmethod
    def recording(
        find: Callable[[str], bytes | None],
    ) -> tuple[RobotsArchive, list[str]]:
        origins: list[str] = []

        def find_and_record(origin: str) -> bytes | None:
            origins.append(origin)
            return find(origin)

        return RobotsArchive(find_and_record, max_origins=2), origins

    @pytest.mark.parametrize("body", [RULES, None], ids=["archived", "not archived"])
    def test_origin_is_looked_up_once_while_it_is_in_memory(
        self, body: bytes | None
    ) -> None:
        archive, origins = self.recording(lambda _: body)

        for name in "abab":
            for agent in AGENTS:
                archive.can_fetch(agent, f"https://{name}.example/")

        assert origins == ["https://a.example", "https://b.example"]

    @pytest.mark.parametrize("body", [RULES, None], ids=["archived", "not archived"])
    def test_origins_over_the_limit_are_evicted_and_looked_up_again(
        self, body: bytes | None
    ) -> None:
        archive, origins = self.recording(lambda _: body)
        urls = [f"https://site{n}.example/private" for n in range(50)]

        first, second = (archive.can_fetch_many(AGENT, urls) for _ in range(2))

        assert first == second
        assert len(origins) == 100

    def test_origin_in_use_is_not_evicted(self) -> None:
        archive, origins = self.recording(lambda _: RULES)

        for name in "abacada":
            archive.can_fetch(AGENT, f"https://{name}.example/")

        assert Counter(origins)["https://a.example"] == 1

    def test_exception_from_find_is_raised_and_not_cached(self) -> None:
        errors = [InvalidURLError("a broken archive", url=""), None]

        def find(origin: str) -> bytes:
            del origin
            if (error := errors.pop(0)) is not None:
                raise error
            return RULES

        archive = RobotsArchive(find)
        with pytest.raises(InvalidURLError, match="a broken archive"):
            archive.can_fetch_many(AGENT, [PRIVATE])

        assert archive.can_fetch(AGENT, PRIVATE) is False

    def test_archive_can_be_shared_between_threads(self) -> None:
        bodies = {
            f"https://site{n}.example": f"User-agent: *\nDisallow: /{n}\n".encode()
            for n in range(40)
        }
        archive = RobotsArchive(bodies.get, max_origins=5)
        urls = [f"{origin}/{n % 3}" for n, origin in enumerate(bodies)] * 20
        expected = [
            RobotsTxt.parse(bodies[str(Origin.from_url(url))]).can_fetch(AGENT, url)
            for url in urls
        ]

        with ThreadPoolExecutor(4) as threads:
            answers = threads.map(lambda _: archive.can_fetch_many(AGENT, urls), "abcd")

        assert [*answers] == [expected] * 4


def test_pickle_contains_the_settings_but_nothing_parsed() -> None:
    archive = RobotsArchive(find_typos, dialect=Dialect.GOOGLE, max_origins=3)
    before = pickle.dumps(archive)
    assert archive.can_fetch(AGENT, PRIVATE) is False

    after = pickle.dumps(archive)

    assert after == before
    assert len(after) < 1_000
    restored: RobotsArchive = pickle.loads(after)  # noqa: S301 (our own bytes)
    assert restored.can_fetch(AGENT, PRIVATE) is False


def test_mapping_is_searched_and_pickled_like_a_function() -> None:
    archive = RobotsArchive({ORIGIN: RULES})

    for one in (archive, pickle.loads(pickle.dumps(archive))):  # noqa: S301 (our own bytes)
        assert one.can_fetch(AGENT, PRIVATE) is False
        assert one.can_fetch(AGENT, "https://missing.example/") is None


def test_keys_of_a_mapping_that_may_be_a_database_are_not_all_read() -> None:
    class Database(dict[str, bytes]):
        def __iter__(self) -> Iterator[str]:
            yield ORIGIN
            raise AssertionError("expected a single key to be read")

    assert RobotsArchive(Database({ORIGIN: RULES})).can_fetch(AGENT, PRIVATE) is False


def find_typos(origin: str) -> bytes:
    del origin
    return TYPOS


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({"find": 7}, TypeError, "find to be a function or a mapping, got int"),
    ({"find": {ROBOTS_TXT: RULES}}, ValueError,
     f"such as 'https://example.com', got '{ROBOTS_TXT}'"),
    ({"find": {"example.com": RULES}}, ValueError, "expected an absolute URL"),
    ({"policy": None}, TypeError, "policy to be a Policy"),
    ({"dialect": "google"}, TypeError, "dialect to be a Dialect"),
    ({"max_origins": 1.5}, TypeError, "max_origins to be an int"),
    ({"max_origins": 0}, ValueError, "max_origins to be 1 or more"),
])  # fmt: skip
def test_invalid_argument_of_an_archive_is_refused(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        RobotsArchive(**({"find": {}.get} | arguments))


@pytest.mark.parametrize(("fields", "error", "text"), [
    ({"status": "200"}, TypeError, "status to be an int, got '200'"),
    ({"status": True}, TypeError, "status to be an int, got True"),
    ({"status": 99}, ValueError, "status to be from 100 to 999, got 99"),
    ({"status": 1_000}, ValueError, "status to be from 100 to 999, got 1000"),
    ({"headers": "a: b"}, TypeError, "headers to be a mapping or pairs of str"),
    ({"headers": [(b"a", b"b")]}, TypeError, "headers to be a mapping or pairs"),
    ({"body": "text"}, TypeError, "body to be bytes, got str"),
    ({"redirects": [ORIGIN]}, TypeError, "redirects to be"),
    ({"redirects": [(ORIGIN, True)]}, TypeError, "status of a redirect to be an int"),
    ({"redirects": [(ORIGIN, "301")]}, TypeError, "redirects to be"),
    ({"redirects": [(ORIGIN, 200)]}, ValueError, "from 300 to 399, got 200"),
    ({"fetched_at": "2024-01-01"}, TypeError, "fetched_at in epoch seconds"),
    ({"fetched_at": True}, TypeError, "fetched_at in epoch seconds"),
    ({"fetched_at": -1}, ValueError, "fetched_at to be finite and 0 or more"),
    ({"fetched_at": math.nan}, ValueError, "fetched_at to be finite and 0 or more"),
    ({"fetched_at": math.inf}, ValueError, "to be finite"),
])  # fmt: skip
def test_invalid_argument_of_a_response_is_refused(
    fields: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ArchivedResponse(**({"status": 200} | fields))


def test_find_that_returns_a_string_is_refused() -> None:
    archive = RobotsArchive({ORIGIN: RULES.decode()}.get)  # type: ignore[arg-type]  # the caller's mistake

    with pytest.raises(
        TypeError,
        match=r"find\('https://example.com'\) to return an ArchivedResponse, bytes or"
        " None, got str",
    ):
        archive.can_fetch(AGENT, PRIVATE)


@pytest.mark.parametrize(("look_up", "error", "text"), [
    (lambda one: one.can_fetch(PRIVATE, AGENT), InvalidProductTokenError, "swapped"),
    (lambda one: one.can_fetch(AGENT, "/private"), InvalidURLError, "absolute"),
    (lambda one: one.can_fetch_many(AGENT, PRIVATE), TypeError, "several URLs"),
    (lambda one: one.can_fetch_many("", []), InvalidProductTokenError, "name"),
    (lambda one: one.can_fetch_many(AGENT, [None]), InvalidURLError, "None"),
    (lambda one: one.refused_agents(AGENT, PRIVATE), TypeError, "several agents"),
    (lambda one: one.refused_agents(None, PRIVATE), TypeError, "several agents"),
    (lambda one: one.refused_agents([AGENT], "a"), InvalidURLError, "absolute"),
])  # fmt: skip
def test_invalid_lookup_is_refused(
    look_up: Callable[[RobotsArchive], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        look_up(RobotsArchive({ORIGIN: RULES}.get))


@pytest.mark.parametrize(
    ("status", "name"), [(503, "Retry-After"), (301, "Location")], ids=str
)
def test_bug_while_judging_closes_one_origin_and_is_shown(
    status: int, name: str
) -> None:
    """It used to end the filter of all other origins."""
    responses = {
        ORIGIN: ArchivedResponse(status, [(name, Unreadable("9"))]),
        OTHER_ORIGIN: archived(),
    }
    archive = RobotsArchive(responses.get)

    with pytest.warns(RuntimeWarning, match=r"(?s)of https://example.com: Traceback"):
        answers = archive.can_fetch_many(AGENT, [f"{ORIGIN}/a", f"{OTHER_ORIGIN}/a"])

    assert answers == [False, True]
