"""The checker's fast path: the same results however a URL is spelled."""

from __future__ import annotations

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate import Dialect, Reason, RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.urls._url import readings, split_url

from .builders import AGENT, answered_at_once, checker_of

HOT_BODY = (
    "User-agent: ExampleBot\n"
    "Disallow: /private\n"
    "Disallow: /*.php$\n"
    "Disallow: /caf\u00e9\n"
    "Disallow: /a%2Fb\n"
    "Disallow: /tilde~\n"
    "Disallow: /%41bc\n"
    "Disallow: /x?q=*&r\n"
    "Disallow: /100%25-\n"
    "Disallow: /star%2A\n"
    "Disallow: /cash%24\n"
    "Disallow: /semi;colon\n"
    "Allow: /private/open\n"
    "Allow: /index.html\n"
    "Disallow: /up/\n"
    "Disallow: /robots.txt\n"
)
HOT_ORIGINS = (
    "https://example.com",
    "http://example.com",
    "https://example.com:8443",
    "https://[2001:db8::1]",
    "http://192.0.2.7",
    "https://xn--bcher-kva.example",
    "http://a",
)
HOT_SPELLINGS = (
    *HOT_ORIGINS,
    "HTTPS://EXAMPLE.COM",
    "https://example.com:443",
    "https://example.com:",
    "http://example.com:80",
    "https://example.com:08443",
    "https://user:pass@example.com",
    "https://user@EXAMPLE.com:8443",
    "https://user:p;w@example.com",
    "https://[2001:DB8:0::1]",
    "http://3221225991",
    "http://0xc0.0.2.7",
    "https://b\u00fccher.example",
    "https://B\u00dcCHER.example",
    "https://b%C3%BCcher.example",
    "https://ex\u00adample.com",
    "https://example.com.",
    "https://EXAMPLE.com.:443",
    "  https://example.com",
    "ht\ttps://exam\nple.com",
)
HOT_TARGETS = (
    "",
    "/",
    "?",
    "#",
    "/\\",
    "?q=/private",
    "#/private",
    "/private",
    "/private/open",
    "/private/../open",
    "/open/../private",
    "/open/%2e%2E/private",
    "/./private",
    "/.",
    "/..",
    "/up/.",
    "/up/x/..",
    "/open/..%2fprivate",
    "/private#open",
    "/open#/private",
    "/pri%76ate",
    "/pri%vate",
    "/%70RIVATE",
    "/\\private",
    "/open\\%2e%2e/private",
    "/private/%2e%2e/../open",
    "/./robots.txt",
    "/open\\..\\private",
    "/pri\tvate",
    "/private\n",
    "/private ",
    "/x.php",
    "/x.php?y",
    "/x.php%24",
    "/x.php$",
    "/caf\u00e9",
    "/caf%c3%a9",
    "/CAF%C3%89",
    "/cafe\u0301",
    "/a/b",
    "/a%2fb",
    "/a%252fb",
    "/tilde~",
    "/tilde%7e",
    "/Abc",
    "/%41bc",
    "/%4",
    "/%",
    "/100%-off",
    "/star*",
    "/star%2a",
    "/cash$",
    "/cash%24",
    "/semi;colon",
    "/semi%3bcolon",
    "/x?q=1&r",
    "/x?q=1/../&r",
    "/x?q=%31&r",
    "/index.html",
    "//private",
    "/robots.txt",
    "/robots%2Etxt",
    "/robots.txt?",
    "/robots.txt#x",
    "/ROBOTS.TXT",
    "/\u20ac",
    "/\U0001f600",
    "/\udcff",
    "/[x]|{y}^`\"<>'",
)


class FastPath:
    """A checker with all of `HOT_ORIGINS` in memory, and their parsed file."""

    def __init__(self, dialect: Dialect) -> None:
        site = FakeSite()
        for origin in HOT_ORIGINS:
            site.serve(origin, HOT_BODY)
        self.dialect = dialect
        self.checker = checker_of(site, dialect=dialect)
        self.robots_txt = RobotsTxt.parse(HOT_BODY, dialect=dialect)
        anyio.run(self.checker.prefetch, HOT_ORIGINS)
        assert len(site.requests) == len(HOT_ORIGINS)

    def assert_answers_agree(self, url: str) -> None:
        origin, target = split_url(url)
        matches = {
            one: self.robots_txt.match(AGENT, f"{origin}{one}")
            for one in readings(target)
        }
        refusals = [
            match
            for one, match in matches.items()
            if not (match.allowed or one == "/robots.txt")
        ]
        match = (refusals or [*matches.values()])[0]
        hot = [self.checker.peek(AGENT, url), self.checker.peek(AGENT, url)]
        verdict = answered_at_once(self.checker.check(AGENT, url))
        listed = answered_at_once(self.checker.check([AGENT], url))

        answers = [*hot, verdict.allowed, listed.allowed]
        assert answers == [not refusals] * 4, (url, verdict)
        if verdict.reason is not Reason.ROBOTS_TXT:
            assert verdict.rule == match.rule


@pytest.fixture(scope="module", params=Dialect, ids=lambda dialect: dialect.value)
def fast_path(request: pytest.FixtureRequest) -> FastPath:
    return FastPath(request.param)


@pytest.mark.parametrize("spelling", HOT_SPELLINGS)
def test_fast_path_agrees_with_the_parsed_file(
    fast_path: FastPath, spelling: str
) -> None:
    for target in HOT_TARGETS:
        fast_path.assert_answers_agree(spelling + target)


@given(
    spelling=st.sampled_from(HOT_SPELLINGS),
    pieces=st.lists(
        st.one_of(
            st.sampled_from([target for target in HOT_TARGETS if target]),
            st.sampled_from(list("/.%*$?#\\;&=~ \t2eEfF")),
            st.text(max_size=3),
        ),
        max_size=6,
    ),
)
def test_fast_path_agrees_with_the_parsed_file_for_any_url(
    fast_path: FastPath, spelling: str, pieces: list[str]
) -> None:
    fast_path.assert_answers_agree(f"{spelling}/{''.join(pieces)}")


@pytest.mark.anyio
@pytest.mark.parametrize("dialect", Dialect)
async def test_host_with_a_semicolon_gets_the_same_result_hot_and_cold(
    dialect: Dialect,
) -> None:
    """Google's parser ends the host at ";", but clients do not."""
    origin = "https://semi;colon"

    async def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"User-agent: *\nDisallow: /private\n")

    checker = RobotsChecker(
        user_agent=AGENT,
        client=httpx.MockTransport(answer),
        clock=ManualClock(),
        dialect=dialect,
    )

    cold = (await checker.check(AGENT, f"{origin}/private")).allowed
    hot = [checker.peek(AGENT, f"{origin}/private") for _ in range(2)]

    assert [cold, *hot] == [False] * 3
