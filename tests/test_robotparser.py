"""The drop-in for `urllib.robotparser`, also against CPython's own tests."""

from __future__ import annotations

import copy
import pickle
import sys
import unittest
import urllib.request
from typing import TYPE_CHECKING

import pytest

from robotsgate import InvalidURLError, SystemClock, __version__, robotparser
from robotsgate.robotparser import RequestRate, RobotFileParser
from tests.servers.answers import Raw, Reply, Routes, redirect
from tests.servers.loopback import dead_port
from tests.servers.proxy import forward_proxy
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Answer, Connection, LoopbackServer, Request

    Serve = Callable[..., LoopbackServer]

RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 5\nSitemap: /map.xml\n"
FILE = Reply(body=RULES)
MISSING = Reply(status=500, body=b"<title>404 Not Found</title>")


def parsed(*lines: str) -> RobotFileParser:
    parser = RobotFileParser()
    parser.parse(lines)
    return parser


@cases("answer public private", {
    "200": (FILE, True, False),
    "redirect": (redirect("/moved"), True, False),
    "401": (Reply(status=401), False, False),
    "403": (Reply(status=403), False, False),
    "404": (Reply(status=404), True, True),
    "410": (Reply(status=410), True, True),
    "429": (Reply(status=429), False, False),
    "500": (Reply(status=500), False, False),
    "500 with a page that says not found": (MISSING, False, False),
    "redirect loop": (redirect("/robots.txt"), False, False),
    "no HTTP": (Raw(b"rubbish\r\n\r\n"), False, False),
    "no server": (None, False, False),
})  # fmt: skip
def test_response_decides_what_may_be_fetched(
    serve: Serve, answer: Answer | None, *, public: bool, private: bool
) -> None:
    site = f"http://127.0.0.1:{dead_port()}"
    if answer is not None:
        site = serve(Routes({"/robots.txt": answer, "/moved": FILE})).url
    parser = RobotFileParser(f"{site}/robots.txt")

    parser.read()

    assert parser.can_fetch("Bot", f"{site}/public") is public
    assert parser.can_fetch("Bot", f"{site}/private") is private
    assert parser.allow_all is private
    assert parser.disallow_all is not public
    assert bool(parser.mtime()) is (public and not private)


def test_read_replaces_what_was_known(serve: Serve) -> None:
    answers = [FILE, Reply(status=404), Reply(body=b"User-agent: *\nDisallow: /public")]

    def answer(request: Request, connection: Connection) -> None:
        answers.pop(0)(request, connection)

    parser = RobotFileParser(f"{serve(answer).url}/robots.txt")
    seen = []

    for _ in range(3):
        parser.read()
        allowed = [parser.can_fetch("Bot", path) for path in ("/public", "/private")]
        seen.append((*allowed, parser.crawl_delay("Bot"), parser.site_maps()))

    assert seen == [
        (True, False, 5, ["/map.xml"]),
        (True, True, None, None),
        (False, True, None, None),
    ]


def test_read_fetches_exactly_the_url(serve: Serve) -> None:
    server = serve(Routes({"/a/b?c=d": redirect("robots.txt"), "/a/robots.txt": FILE}))
    parser = RobotFileParser(f"{server.url}/a/b?c=d")

    parser.read()

    assert server.targets == ["/a/b?c=d", "/a/robots.txt"]
    assert not parser.can_fetch("Bot", "/private")


@cases("options sent", {
    "default": ({}, f"robotsgate/{__version__}"),
    "own": ({"user_agent": "Bot/1.0"}, "Bot/1.0"),
})  # fmt: skip
def test_read_sends_the_user_agent(
    serve: Serve, options: dict[str, str], sent: str
) -> None:
    server = serve(FILE)

    RobotFileParser(f"{server.url}/robots.txt", **options).read()

    assert server.requests[0].headers["user-agent"] == sent


def test_read_uses_the_proxy_of_the_environment(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, server = serve(forward_proxy), serve(FILE)
    monkeypatch.setattr("robotsgate.fetching._robots_fetch._warned", set())
    monkeypatch.setenv("http_proxy", proxy.url)
    parser = RobotFileParser(f"{server.url}/robots.txt")

    parser.read()

    assert proxy.targets == [f"{server.url}/robots.txt"]
    assert not parser.can_fetch("Bot", "/private")


@pytest.mark.parametrize("url", ["", "/robots.txt", "file:///robots.txt"])
def test_read_rejects_what_is_not_on_a_server(url: str) -> None:
    with pytest.raises(InvalidURLError, match=r"expected an .* URL.*, got"):
        RobotFileParser(url).read()


def test_read_rejects_a_user_agent_that_cannot_be_sent() -> None:
    parser = RobotFileParser("http://127.0.0.1/robots.txt", user_agent="Bot\n")

    with pytest.raises(ValueError, match="printable ASCII, got 'Bot"):
        parser.read()


def test_nothing_is_allowed_before_the_first_file() -> None:
    parser = RobotFileParser()

    assert not parser.can_fetch("Bot", "/")
    assert parser.crawl_delay("Bot") is parser.request_rate("Bot") is None
    assert parser.site_maps() is None
    assert (parser.mtime(), str(parser)) == (0, "")


@cases("name value allowed", {
    "allow_all": ("allow_all", True, True),
    "disallow_all": ("disallow_all", True, False),
    "last_checked": ("last_checked", 0, False),
})  # fmt: skip
def test_attribute_can_be_set(name: str, value: object, *, allowed: bool) -> None:
    parser = parsed("User-agent: *", "Disallow: /private")
    path = "/private" if allowed else "/public"
    assert parser.can_fetch("Bot", path) is not allowed

    setattr(parser, name, value)

    assert parser.can_fetch("Bot", path) is allowed


def test_url_is_split_into_host_and_path() -> None:
    parser = RobotFileParser("https://example.com:8080/robots.txt")

    assert (parser.host, parser.path) == ("example.com:8080", "/robots.txt")


def test_modified_without_a_file_allows_everything() -> None:
    parser = RobotFileParser()

    parser.modified()

    assert parser.can_fetch("Bot", "/private")
    assert abs(parser.mtime() - SystemClock.now()) < 60


def test_parse_adds_to_the_file() -> None:
    parser = parsed("\ufeffUser-agent: *", "Disallow: /a", "Sitemap: /1")

    parser.parse(["User-agent: *\n", "Disallow: /b\n", "Sitemap: /2\n"])
    parser.parse("User-agent: *\nDisallow: /c\nSitemap: /1")

    assert [parser.can_fetch("Bot", f"/{path}") for path in "abcd"] == [False] * 3 + [
        True
    ]
    assert parser.site_maps() == ["/1", "/2"]


@cases("agent allowed", {
    "token": ("ExampleBot", False),
    "header": ("examplebot/1.0 (+https://example.com)", False),
    "header with the name further on": (
        "Mozilla/5.0 (compatible; ExampleBot/1.0)", False
    ),
    "token that contains the name": ("OtherExampleBot", True),
    "browser": ("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0", True),
    "star": ("*", True),
    "empty": ("", True),
    "URL": ("https://example.com/", True),
    "rubbish": ("\0\udc80 (", True),
})  # fmt: skip
def test_any_text_is_an_agent(agent: str, *, allowed: bool) -> None:
    own = [
        "User-agent: examplebot",
        "Disallow: /",
        "Crawl-delay: 2",
        "Request-rate: 1/2",
    ]
    parser = parsed(*own, "User-agent: *", "Disallow: /private")

    assert parser.can_fetch(agent, "/public") is allowed
    assert not parser.can_fetch(agent, "/private")
    assert (parser.crawl_delay(agent) is None) is allowed
    assert (parser.request_rate(agent) is None) is allowed


@cases("url allowed", {
    "absolute": ("https://example.com/private", False),
    "host and path": ("//example.com/private", False),
    "host that looks like the path": ("//private/public", True),
    "path": ("/private", False),
    "path with a colon": ("/public:private", True),
    "path without a slash": ("private", False),
    "white space around it": ("\x00\t /private\n", False),
    "query": ("?q=1", True),
    "colon in a query": ("public?q=1:2", True),
    "empty": ("", True),
    "dot segments": ("/public/../private", False),
    "no host": ("//", False),
    "other scheme": ("mailto:bot@example.com", False),
})  # fmt: skip
def test_url_may_be_a_path(url: str, *, allowed: bool) -> None:
    parser = parsed("User-agent: *", "Disallow: /private")

    assert parser.can_fetch("Bot", url) is allowed


@cases("line delay rate", {
    "whole delay": ("Crawl-delay: 3", 3, None),
    "fraction": ("Crawl-delay: 0.5", 0.5, None),
    "zero": ("Crawl-delay: 0", 0, None),
    "rate": ("Request-rate: 3/15", None, RequestRate(3, 15)),
    "rate with a unit": ("Request-rate: 3/2m", None, RequestRate(3, 120)),
    "fraction of a second": ("Request-rate: 1/1.5", None, RequestRate(1, 2)),
    "invalid": ("Request-rate: a/b", None, None),
})  # fmt: skip
def test_numbers_are_whole_where_possible(
    line: str, delay: float | None, rate: RequestRate | None
) -> None:
    parser = parsed("User-agent: *", line)

    assert parser.crawl_delay("Bot") == delay
    assert isinstance(parser.crawl_delay("Bot"), type(delay))
    assert parser.request_rate("Bot") == rate
    assert rate is None or {type(one) for one in parser.request_rate("Bot") or ()} == {
        int
    }


def test_copy_gives_the_same_answers() -> None:
    parser = parsed("User-agent: *", "Disallow: /private")

    for copied in (copy.deepcopy(parser), pickle.loads(pickle.dumps(parser))):  # noqa: S301 (our own)
        assert not copied.can_fetch("Bot", "/private")
        assert copied.can_fetch("Bot", "/public")


# What CPython's own tests expect and this parser does not do, with the section of
# RFC 9309. The page "Move here from another library" lists the same differences.
FIRST_MATCH = {  # Python 3.11
    "UserAgentGoogleMobileTest.test_bad_urls": "§2.2.1: names are compared whole",
    "UseFirstUserAgentWildcardTest.test_good_urls": "§2.2.1: groups are merged",
    "StringFormattingTest.test_string_formatting": "groups keep their order",
}
LONGEST_MATCH = {  # Python 3.13.18, 3.14.10 and 3.15.2
    "SimpleExampleTest.test_bad_urls": "§2.2.2: the longest pattern wins",
    "LongestMatchWildcardTest.test_bad_urls": "§2.2.2: the same",
    "AllowWinsEqualFullMatchTest.test_good_urls": "§2.2.2: the same",
    "AllowWinsEqualMatchWildcardTest.test_good_urls": "§2.2.2: the same",
    "PercentEncodingTest.test_good_urls": "§2.2.2: a lone % also stands for %25",
    "PercentEncodingTest.test_bad_urls": "§2.2.2: reserved characters stay as written",
    "LocalNetworkTestCase.testRead": "§2.2.2: the same",
    "WeirdPathTest.test_good_urls": "§2.2.3: $ is special only at the end",
    "WeirdPathTest.test_bad_urls": "§2.2.3: the same",
    "WeirdPathTest.test_string_formatting": "patterns stay as written",
    "ConstructedStringFormattingTest.test_group_without_rules": "there is no Entry",
    "ConstructedStringFormattingTest.test_group_without_user_agent": "the same",
}


def test_tests_of_cpython_pass_except_for_contradictions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "test.test_robotparser"
    monkeypatch.setattr(urllib, "robotparser", robotparser, raising=False)
    monkeypatch.setitem(sys.modules, "urllib.robotparser", robotparser)
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = pytest.importorskip(name, reason="CPython's tests are not installed")
    kinds = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, unittest.TestCase)
        and kind.__name__ != "NetworkTestCase"  # needs the internet
    ]
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    result = unittest.TestResult()

    unittest.TestSuite(map(load, kinds)).run(result)

    failed = {
        getattr(test, "test_case", test).id().removeprefix(f"{name}.")
        for test, _ in [*result.failures, *result.errors]
    }
    is_new = hasattr(module, "LongestMatchTest")
    assert failed == (LONGEST_MATCH if is_new else FIRST_MATCH).keys()
    assert result.testsRun > len(failed)
