"""Lookups in an archive, compared with a checker that fetches the same responses."""

from __future__ import annotations

import gzip
import pickle
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate import (
    AccessResult,
    AddressGuard,
    ArchivedResponse,
    Dialect,
    FailureKind,
    FetchedResponse,
    FetchFailedError,
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
from robotsgate.testing import ManualClock
from tests.checking.builders import Unreadable
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from robotsgate import UsagePreferences, Verdict

NOW = 1_800_000_000.0
AGENT = "ExampleBot"
AGENTS = (AGENT, "GPTBot", "CCBot", "*")
ORIGIN = "https://example.com"
ORIGINS = (ORIGIN, "http://example.com", "https://b.example:8443", "http://10.0.0.1")
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
BODIES = {
    "empty": b"",
    "rules": RULES,
    "disallow everything": b"user-agent: *\ndisallow: /",
    "after a byte order mark": b"\xef\xbb\xbf" + RULES,
    "with typos that Google accepts": b"useragent *\ndisalow: /private\n",
    "not UTF-8": b"User-agent: *\nDisallow: /\xff\x00\n",
    "a not-found page": b"<title>404 Not Found</title>",
    "cut off in its last line": b"#" * 511_980 + b"\nUser-agent: *\nDisallow: /\n",
}
TARGETS = (
    *(
        "/",
        "/private",
        "/%70rivate?a#b",
        "/a/../private",
        "/robots.txt",
        "/robots.txt?",
    ),
    *("/\xff", "/private\\..", "/index.html"),
)
PRESETS = {
    "default": Policy(),
    "google_today": Policy.google_today(),
    "google_2021": Policy.google_2021(),
    "rfc9309": Policy.rfc9309(),
    "strict": Policy.strict(),
    "no limit and no window": Policy(
        unreachable_limit=0, stale_window=0, default_lifetime=1
    ),
    "allow immediately": replace(
        Policy.google_2021(), outage_grace=0, unreachable_limit=0
    ),
    "429 restricted, 403 unreachable": Policy(
        on_too_many_requests=AccessResult.RESTRICTED,
        on_access_denied=AccessResult.UNREACHABLE,
    ),
    "one redirect": Policy(max_redirects=1, address_guard=AddressGuard.PUBLIC_ONLY),
    "a small size limit": Policy(max_body_bytes=30, address_guard=AddressGuard.OFF),
}


class Results(NamedTuple):
    """All results for one URL."""

    may_fetch: bool
    verdict: Verdict
    usage: UsagePreferences


class ArchiveFetcher:
    """Serves an archive's responses as a server would."""

    dials_nothing = True

    def __init__(self, responses: Mapping[str, ArchivedResponse]) -> None:
        self._by_url: dict[str, FetchedResponse] = {}
        for origin, response in responses.items():
            url = f"{origin}/robots.txt"
            for target, status in response.redirects:
                self._by_url[url] = _fetched(status, [("Location", target)], b"")
                url = target
            self._by_url[url] = _fetched(
                response.status, [*response.headers], response.body
            )

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        del headers, max_bytes
        try:
            return self._by_url[url]
        except KeyError:
            raise FetchFailedError("gone", kind=FailureKind.OTHER) from None


def _fetched(
    status: int, headers: list[tuple[str, str]], body: bytes
) -> FetchedResponse:
    # With its length, an empty body in a content coding is complete.
    headers = [*headers, ("Content-Length", str(len(body)))]
    return FetchedResponse(status=status, headers=headers, body=body, is_decoded=True)


def live_results(
    responses: Mapping[str, ArchivedResponse],
    questions: Sequence[tuple[str, str]],
    **settings: Any,  # noqa: ANN401 (the same for both)
) -> list[Results]:
    """The results of a checker that fetches `responses` at `NOW`."""

    async def look_up() -> list[Results]:
        fetcher, clock = ArchiveFetcher(responses), ManualClock(NOW)
        async with RobotsChecker(client=fetcher, clock=clock, **settings) as checker:
            return [
                Results(
                    await checker.can_fetch(agent, url),
                    await checker.check(agent, url),
                    await checker.usage_preferences(agent, url),
                )
                for agent, url in questions
            ]

    return anyio.run(look_up)


def assert_archive_agrees(
    responses: Mapping[str, ArchivedResponse],
    questions: Sequence[tuple[str, str]],
    **settings: Any,  # noqa: ANN401 (the same for both)
) -> None:
    """Compare each (agent, URL) pair; unarchived origins must give `None`."""
    archive = RobotsArchive(responses.get, **settings)
    known = [one for one in questions if str(Origin.from_url(one[1])) in responses]
    for (agent, url), live in zip(
        known, live_results(responses, known, **settings), strict=True
    ):
        verdict = archive.check(agent, url)
        assert verdict is not None
        expected = replace(live.verdict, fresh_until=None)
        if verdict.error is not None and "archive has no record" in verdict.error:
            expected = replace(expected, error=verdict.error)
        assert verdict == expected
        assert archive.can_fetch(agent, url) is live.may_fetch
        assert archive.can_fetch_many(agent, [url]) == [live.may_fetch]
        assert archive.usage_preferences(agent, url) == live.usage
        refused = archive.refused_agents([agent], url)
        assert refused == (() if live.may_fetch else (agent,))
    for agent, url in set(questions).difference(known):
        assert archive.check(agent, url) is None


def archived(
    status: int = 200, body: bytes = RULES, *, location: str | None = None
) -> ArchivedResponse:
    headers = () if location is None else (("Location", location),)
    return ArchivedResponse(status, headers, body, fetched_at=NOW)


LOCATIONS = (
    *(None, "", "/robots.txt", "robots.txt?a", "elsewhere", "ftp://example.com/", "\0"),
    *(f"{origin}/robots.txt" for origin in ORIGINS),
    *("//b.example:8443/robots.txt", "HTTP://u@EXAMPLE.com:80/robots.txt#a", "//["),
)
HEADERS = st.lists(
    st.sampled_from([
        ("Retry-After", "7200"),
        ("RETRY-AFTER", "Fri, 15 Jan 2027 09:00:00 GMT"),
        ("Cache-Control", "no-store"),
        ("Content-Encoding", "br"),
        *(("location", one) for one in LOCATIONS if one is not None),
    ]),
    max_size=3,
)  # fmt: skip
STATUSES = st.one_of(
    st.sampled_from([200, 200, 301, 302, 307, 308, 404, 429, 503]),
    st.integers(100, 999),
)
REDIRECTS = st.lists(
    st.tuples(
        st.sampled_from([
            "https://hop.example/a",
            "https://hop.example/b?c",
            "http://10.0.0.2/d",
            "https://hop.example/e",
            "https://hop.example/f",
            "https://hop.example/g",
        ]),
        st.sampled_from([301, 302, 303, 307, 308]),
    ),
    unique_by=lambda redirect: redirect[0],
    max_size=6,
)  # fmt: skip


@st.composite
def archives(draw: st.DrawFn) -> dict[str, ArchivedResponse]:
    """Responses from some of `ORIGINS`; at most one of them was redirected."""
    origins = draw(st.lists(st.sampled_from(ORIGINS), unique=True, min_size=1))
    follower = draw(st.sampled_from([*ORIGINS, None]))
    return {
        origin: ArchivedResponse(
            draw(STATUSES),
            draw(HEADERS),
            BODIES[draw(st.sampled_from([*BODIES]))],
            redirects=draw(REDIRECTS) if origin == follower else (),
            fetched_at=NOW,
        )
        for origin in origins
    }


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    responses=archives(),
    targets=st.lists(st.sampled_from(TARGETS), min_size=1, max_size=3),
    policy=st.sampled_from([*PRESETS.values()]),
    dialect=st.sampled_from(Dialect),
)
def test_any_archive_agrees_with_a_checker_at_the_time_of_the_fetch(
    responses: dict[str, ArchivedResponse],
    targets: list[str],
    policy: Policy,
    dialect: Dialect,
) -> None:
    questions = [
        (agent, origin + target)
        for origin in ORIGINS
        for agent in AGENTS
        for target in targets
    ]

    assert_archive_agrees(responses, questions, policy=policy, dialect=dialect)


def chain(hops: int, *, end: ArchivedResponse | None) -> dict[str, ArchivedResponse]:
    """Origins that redirect from one to the next, `hops` times."""
    responses = {
        f"https://hop{hop}.example": archived(
            301, b"", location=f"https://hop{hop + 1}.example/robots.txt"
        )
        for hop in range(hops)
    }
    return responses if end is None else responses | {f"https://hop{hops}.example": end}


@pytest.mark.parametrize(
    ("responses", "access"),
    [
        pytest.param(chain(0, end=archived()), AccessResult.SUCCESSFUL, id="none"),
        pytest.param(chain(5, end=archived()), AccessResult.SUCCESSFUL, id="five"),
        pytest.param(chain(6, end=archived()), AccessResult.UNAVAILABLE, id="six"),
        pytest.param(
            chain(2, end=archived(302, location="https://hop0.example/robots.txt")),
            AccessResult.UNAVAILABLE,
            id="a loop",
        ),
        pytest.param(
            chain(2, end=None),
            AccessResult.UNREACHABLE,
            id="to an origin that is not archived",
        ),
        pytest.param(
            chain(1, end=archived(302, location="/other.txt")),
            AccessResult.UNREACHABLE,
            id="to another file",
        ),
        pytest.param(
            {"https://hop0.example": archived(301, location="http://10.0.0.1/")},
            AccessResult.REFUSED,
            id="to a private address",
        ),
    ],
)
def test_redirects_are_followed_within_the_archive(
    responses: dict[str, ArchivedResponse], access: AccessResult
) -> None:
    verdict = RobotsArchive(responses.get).check(AGENT, "https://hop0.example/private")

    assert verdict is not None
    assert verdict.access is access
    assert verdict.allowed is (access is AccessResult.UNAVAILABLE)
    assert_archive_agrees(responses, [(AGENT, "https://hop0.example/private")])


def test_redirects_stored_with_a_response_count_and_are_reported() -> None:
    before = tuple((f"https://hop{hop}.example/", 301) for hop in range(5))
    response = replace(archived(), redirects=before)
    further = archived(302, location="https://example.com/robots.txt")
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
        answers: dict[int, list[bool | None]] = {}

        def look_up(start: int) -> None:
            rotated = urls[start:] + urls[:start]
            results = archive.can_fetch_many(f"Bot{chr(97 + start % 3)}", rotated)
            answers[start] = results[-start:] + results[:-start] if start else results

        threads = [threading.Thread(target=look_up, args=(n * 7,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert [*answers.values()] == [expected] * 4


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
    return BODIES["with typos that Google accepts"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"find": 7}, TypeError, "find to be a function or a mapping, got int"),
        (
            {"find": {f"{ORIGIN}/robots.txt": RULES}},
            ValueError,
            f"such as 'https://example.com', got '{ORIGIN}/robots.txt'",
        ),
        ({"find": {"example.com": RULES}}, ValueError, "expected an absolute URL"),
        ({"policy": None}, TypeError, "policy to be a Policy"),
        ({"dialect": "google"}, TypeError, "dialect to be a Dialect"),
        ({"max_origins": 1.5}, TypeError, "max_origins to be an int"),
        ({"max_origins": 0}, ValueError, "max_origins to be 1 or more"),
    ],
)
def test_invalid_argument_of_an_archive_is_refused(
    arguments: dict[str, Any], error: type[Exception], text: str
) -> None:
    defaults: dict[str, Any] = {"find": {}.get}

    with pytest.raises(error, match=text):
        RobotsArchive(**(defaults | arguments))


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ({"status": "200"}, TypeError, "status to be an int, got '200'"),
        ({"status": True}, TypeError, "status to be an int, got True"),
        ({"status": 99}, ValueError, "status to be from 100 to 999, got 99"),
        ({"headers": "a: b"}, TypeError, "headers to be a mapping or pairs of str"),
        ({"headers": [(b"a", b"b")]}, TypeError, "headers to be a mapping or pairs"),
        ({"body": "text"}, TypeError, "body to be bytes, got str"),
        ({"redirects": [ORIGIN]}, TypeError, "redirects to be"),
        (
            {"redirects": [(ORIGIN, True)]},
            TypeError,
            "status of a redirect to be an int",
        ),
        ({"redirects": [(ORIGIN, "301")]}, TypeError, "redirects to be"),
        ({"redirects": [(ORIGIN, 200)]}, ValueError, "from 300 to 399, got 200"),
        ({"fetched_at": "2024-01-01"}, TypeError, "fetched_at in epoch seconds"),
        ({"fetched_at": True}, TypeError, "fetched_at in epoch seconds"),
        ({"fetched_at": -1}, ValueError, "fetched_at to be finite and 0 or more"),
        (
            {"fetched_at": float("nan")},
            ValueError,
            "fetched_at to be finite and 0 or more",
        ),
        ({"fetched_at": float("inf")}, ValueError, "to be finite"),
    ],
)
def test_invalid_argument_of_a_response_is_refused(
    fields: dict[str, Any], error: type[Exception], text: str
) -> None:
    defaults: dict[str, Any] = {"status": 200}

    with pytest.raises(error, match=text):
        ArchivedResponse(**(defaults | fields))


def test_find_that_returns_a_string_is_refused() -> None:
    archive = RobotsArchive({ORIGIN: RULES.decode()}.get)  # type: ignore[arg-type]  # the caller's mistake

    with pytest.raises(
        TypeError,
        match=r"find\('https://example.com'\) to return an ArchivedResponse, bytes or"
        " None, got str",
    ):
        archive.can_fetch(AGENT, PRIVATE)


@pytest.mark.parametrize(
    ("look_up", "error", "text"),
    [
        (
            lambda one: one.can_fetch(PRIVATE, AGENT),
            InvalidProductTokenError,
            "swapped",
        ),
        (lambda one: one.can_fetch(AGENT, "/private"), InvalidURLError, "absolute"),
        (lambda one: one.can_fetch_many(AGENT, PRIVATE), TypeError, "several URLs"),
        (lambda one: one.can_fetch_many("", []), InvalidProductTokenError, "name"),
        (lambda one: one.can_fetch_many(AGENT, [None]), InvalidURLError, "None"),
        (lambda one: one.refused_agents(AGENT, PRIVATE), TypeError, "several agents"),
        (lambda one: one.refused_agents(None, PRIVATE), TypeError, "several agents"),
        (lambda one: one.refused_agents([AGENT], "a"), InvalidURLError, "absolute"),
    ],
)
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
        ORIGINS[1]: archived(),
    }
    archive = RobotsArchive(responses.get)

    with pytest.warns(RuntimeWarning, match=r"(?s)of https://example.com: Traceback"):
        answers = archive.can_fetch_many(AGENT, [f"{ORIGIN}/a", f"{ORIGINS[1]}/a"])

    assert answers == [False, True]
