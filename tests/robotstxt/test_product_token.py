"""The product tokens of agent names and User-Agent headers."""

from __future__ import annotations

from typing import Any

import pytest
import yarl

from robotsgate.errors import InvalidProductTokenError
from robotsgate.robotstxt import RobotsTxt
from robotsgate.robotstxt._product_token import product_tokens
from tests.tables import cases

_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko"
_CHROME = f"Mozilla/5.0 (X11; Linux x86_64) {_WEBKIT}) Chrome/130.0.0.0 Safari/537.36"
_ANDROID = (
    f"Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) {_WEBKIT})"
    " Chrome/130.0.6723.69 Mobile Safari/537.36"
)
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)"
_IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X)"
_IOS_WEBKIT = "AppleWebKit/605.1.15 (KHTML, like Gecko)"

# As sent by crawlers, or as written in user-agent lines of real files.
CRAWLERS = {
    f"{_ANDROID} (compatible; Googlebot/2.1; +http://www.google.com/bot.html)":
        "googlebot",
    f"Mozilla/5.0 {_WEBKIT}; compatible; Googlebot/2.1; +http://www.google.com/bot.html"
    ") Chrome/130.0.6723.69 Safari/537.36": "googlebot",
    f"{_ANDROID} (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile)":
        "adsbot-google-mobile",
    f"{_CHROME} Google Favicon": "google",
    "Mozilla/5.0 (compatible) Feedfetcher-Google; (+http://www.google.com/feed.html)":
        "feedfetcher-google",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)":
        "bingbot",
    f"{_MAC} {_IOS_WEBKIT} Version/17.4 Safari/605.1.15 (Applebot/0.1;"
    " +http://www.apple.com/go/applebot)": "applebot",
    f"{_MAC} {_IOS_WEBKIT} Version/8.0.2 Safari/600.2.5 (Amazonbot/0.1;"
    " +https://developer.amazon.com/support/amazonbot) Chrome/119.0 Safari/537.36":
        "amazonbot",
    f"Mozilla/5.0 {_WEBKIT}; compatible; GPTBot/1.2; +https://openai.com/gptbot)":
        "gptbot",
    f"Mozilla/5.0 {_WEBKIT}; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)":
        "claudebot",
    f"Mozilla/5.0 {_WEBKIT}; compatible; PerplexityBot/1.0;"
    " +https://perplexity.ai/perplexitybot)": "perplexitybot",
    f"Mozilla/5.0 (Linux; Android 5.0) {_WEBKIT}) Mobile Safari/537.36 (compatible;"
    " Bytespider; spider-feedback@bytedance.com)": "bytespider",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)":
        "facebookexternalhit",
    "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)": "yandexbot",
    "Mozilla/5.0(compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)":
        "baiduspider",
    "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)": "duckduckbot",
    "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)":
        "semrushbot",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)": "ahrefsbot",
    "Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/bot)":
        "archive.org_bot",
    f"{_CHROME} ExampleBot/1.0": "examplebot",
    f"{_CHROME} ExampleBot/1.0 (+https://example.org/bot)": "examplebot",
    f"{_CHROME} OtherBrowser/7 (compatible; ExampleBot/1.0)": "examplebot",
    "(Compatible; ExampleBot/1.0; +https://example.org/bot)": "examplebot",
    "MOZILLA/5.0 (COMPATIBLE;EXAMPLEBOT)": "examplebot",
    "Mozilla/5.0 (compatible; Googlebot/2.1) https://deepcrawl.com/bot": "googlebot",
    "Mozilla/5.0 https://deepcrawl.com/bot (compatible; Googlebot/2.1)": "googlebot",
    "Mozilla/4.0 (compatible; BullsEye; Windows 95)": "bullseye",
    "Mozilla/3.01 (hotwired-test/0.1)": "hotwired-test",
    "Mozilla/4.0 (compatible; MSIE 5.0; Windows 95) VoilaBot BETA 1.2 (http://x.com/)":
        "voilabot",
    "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT; MS Search 4.0 Robot)": "ms",
    "Mozilla/4.0 (compatible; MSIE 5.0; Windows NT; DigExt; DTS Agent": "dts",
    "Mozilla/5.0 DV/1.2": "dv",
    "Mozilla (compatible; denybot/1.0)": "denybot",
    "Mozilla(compatible;denybot/1.0)": "denybot",
    "Mozilla denybot 99.9": "denybot",
    "Mozilla; denybot/1.0": "denybot",
    "Mozilla\tdenybot/1.0": "denybot",
    "Mozilla 5.0 denybot/99.9": "denybot",
    "curl/8.0": "curl",
    "python-requests/2.31": "python-requests",
    "Scrapy/2.12 (+https://scrapy.org)": "scrapy",
    "Wget/1.21": "wget",
}  # fmt: skip

BROWSERS = {
    "Chrome": _CHROME,
    "headless Chrome": _CHROME.replace("Chrome", "HeadlessChrome"),
    "Chrome on Android": _ANDROID,
    "Chrome on iOS":
        f"{_IPHONE} {_IOS_WEBKIT} CriOS/130.0.6723.90 Mobile/15E148 Safari/604.1",
    "Firefox":
        "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Safari": f"{_MAC} {_IOS_WEBKIT} Version/17.5 Safari/605.1.15",
    "Safari on iOS":
        f"{_IPHONE} {_IOS_WEBKIT} Version/17.5 Mobile/15E148 Safari/604.1",
    "Edge": f"{_CHROME} Edg/130.0.2849.68",
    "Opera": f"{_CHROME} OPR/114.0.0.0",
    "Samsung": f"Mozilla/5.0 (Linux; Android 14; SM-S928B) {_WEBKIT})"
        " SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36",
    "DuckDuckGo": f"{_IPHONE} {_IOS_WEBKIT} Version/17.5 Mobile/15E148 DuckDuckGo/7"
        " Safari/605.1.15",
    "PlayStation": f"Mozilla/5.0 (PlayStation; PlayStation 5/2.26) {_IOS_WEBKIT}"
        " Version/13.0 Safari/605.1.15",
    "Internet Explorer 11":
        "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko",
    "Internet Explorer 6": "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)",
    "Chromium on Ubuntu": _CHROME.replace("Chrome/", "Ubuntu Chromium/80.0 Chrome/"),
    "Chromium on Raspbian": _CHROME.replace("Chrome/", "Raspbian Chromium/8 Chrome/"),
    "Pale Moon": "Mozilla/5.0 (X11; Linux x86_64; rv:102.0) Gecko/20100101 Goanna/6.7"
        " Firefox/102.0 PaleMoon/33.3.1",
    "Basilisk": "Mozilla/5.0 (X11; Linux x86_64; rv:60.9) Gecko/20100101 Goanna/4.1"
        " Firefox/60.9 Basilisk/20180905",
    "QQ": f"{_CHROME} Core/1.70.3877.400 QQBrowser/10.8.4506.400",
    "QQ on Android": f"{_CHROME} MQQBrowser/12.1 Mobile COVC/046141",
    "Facebook on iOS": f"{_IPHONE} {_IOS_WEBKIT} Mobile/15E148"
        " [FBAN/FBIOS;FBAV/470.0.0.36.103;FBDV/iPhone14,5;FBSV/17.5;FBLC/en_US]",
    "Facebook on Android": f"{_ANDROID} [FB_IAB/FB4A;FBAV/443.0.0.23.229;]",
    "WeChat": f"{_ANDROID} MicroMessenger/8.0.32",
    "Brave": f"{_CHROME} Brave/80",
    "SeaMonkey": "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"
        " SeaMonkey/2.53.1",
    "Iceweasel": "Mozilla/5.0 (X11; Linux; rv:38.0) Gecko/20100101 Iceweasel/38.0",
    "Epiphany": f"{_MAC} {_IOS_WEBKIT} Version/13.0 Safari/605.1.15 Epiphany/605.1.15",
    "Konqueror": "Mozilla/5.0 (compatible; Konqueror/4.5) KHTML/4.5.4 (like Gecko)",
    "Opera before Chromium":
        "Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18",
    "only the first product": "Mozilla/5.0",
    "versions separated by spaces": "Mozilla 5.0 (X11; Linux) Gecko Firefox 99.9",
    "compatible with nothing": "Mozilla/5.0 (compatible; )",
    "a name beyond 500 characters": f"Mozilla/5.0 ({'a ' * 250}) ExampleBot/1.0",
    "compatible with a URL": "Mozilla/5.0 (compatible; +http://example.org/)",
}  # fmt: skip


@pytest.mark.parametrize(("header", "token"), CRAWLERS.items(), ids=CRAWLERS.values())
def test_crawlers_header_is_reduced_to_its_name(header: str, token: str) -> None:
    """Only a name after "compatible;" used to count, and only in lower case."""
    robots = RobotsTxt.parse(f"User-agent: {header}\nDisallow: /")

    assert product_tokens(header) == (token,)
    assert robots.groups[0].tokens == (token,)


@pytest.mark.parametrize("header", BROWSERS.values(), ids=BROWSERS)
def test_browsers_header_does_not_name_a_crawler(header: str) -> None:
    """It used to mean "mozilla"; on a user-agent line, that matched every browser."""
    robots = RobotsTxt.parse(f"User-agent: {header}\nDisallow: /")

    with pytest.raises(InvalidProductTokenError) as caught:
        robots.can_fetch(header, "/")

    assert f"or '*', got a browser's User-Agent, {header!r}" in str(caught.value)
    assert caught.value.agent == header
    assert robots.groups[0].tokens == ("",)


@cases("agent token", {
    "a token, in lower case": ("ExampleBot", "examplebot"),
    "white space around it": ("  ExampleBot\n", "examplebot"),
    "digits": ("MJ12bot", "mj12bot"),
    "digits alone": ("008", "008"),
    "dots": ("sitecheck.internetseer.com", "sitecheck.internetseer.com"),
    "underscore and hyphen": ("my_bot-news", "my_bot-news"),
    "the star": ("*", "*"),
    "the star with white space": (" * ", "*"),
    "a header with a URL in its comment":
        ("ExampleBot/1.0 (+https://example.org/bot)", "examplebot"),
    "no version": ("ExampleBot (+https://example.org/bot)", "examplebot"),
    "two products": ("ExampleBot/0.1 libwww-perl/5.8", "examplebot"),
    "a comment without a space": ("ExampleBot(x)", "examplebot"),
    "letters outside ASCII": ("Jävla-Foobot/1.0", "jävla-foobot"),
    "upper-case letters outside ASCII": ("ÄBOT", "äbot"),
    "vowel signs": ("हिन्दी-bot", "हिन्दी-bot"),
    "spaces and punctuation outside ASCII": ("Foobot\xa0… x", "foobot"),
    "Mozilla alone": ("Mozilla", "mozilla"),
    "a star before a name is no token": ("*bot", None),
})  # fmt: skip
def test_agent_is_reduced_to_its_product_token(agent: str, token: str | None) -> None:
    if token is None:
        with pytest.raises(InvalidProductTokenError):
            product_tokens(agent)
        return

    assert product_tokens(agent) == (token,)


@cases("agents", {
    "list": (["Googlebot-News", "Googlebot"],),
    "tuple with a header": (("Googlebot-News/1.0", "googlebot"),),
})  # fmt: skip
def test_sequence_keeps_its_order(agents: list[str] | tuple[str, ...]) -> None:
    assert product_tokens(agents) == ("googlebot-news", "googlebot")


@cases("agent words", {
    "a URL where the agent should be": (
        "https://example.com/page",
        [": are the arguments swapped?", "'https://example.com/page'"]
    ),
    "an odd URL":
        ("http://[::1]/a (b", ["the arguments swapped?", "'http://[::1]/a (b'"]),
    "empty": ("", ["such as 'ExampleBot'", "got ''"]),
    "white space": (" \t", ["such as 'ExampleBot'", r"got ' \t'"]),
    "path": ("/private", ["such as 'ExampleBot'", "got '/private'"]),
    "only a comment": ("(x)", ["got '(x)'"]),
    "punctuation outside ASCII": ("«bot»", ["got '«bot»'"]),
    "None": (None, ["or a sequence of them, got None"]),
    "bytes": (b"bot", ["or a sequence of them, got b'bot'"]),
    "a number": (7, ["or a sequence of them, got 7"]),
    "a set": ({"bot"}, ["or a sequence of them, got {'bot'}"]),
    "empty list": ([], ["or a sequence of them, got []"]),
    "empty tuple": ((), ["or a sequence of them, got ()"]),
    "empty in a list": (["a", ""], ["got ''"]),
    "None in a list": (["a", None], ["to be a str, got None"]),
    "bytes in a list": ([b"a"], ["to be a str, got b'a'"]),
    "bytearray": (bytearray(b"a"), ["to be a str, got 97"]),
    "URL in a list": (["a", "http://h/"], ["swapped?", "'http://h/'"]),
})  # fmt: skip
def test_agent_without_a_token_raises_an_error_that_quotes_it(
    agent: object, words: list[str]
) -> None:
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens(agent)  # type: ignore[arg-type]  # the mistake under test

    message = str(caught.value)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("agent", [
    "https://user:s3cret@host/", "//user:s3cret@host/", b"https://user:s3cret@host/",
    yarl.URL("https://user:s3cret@host/"), [b"https://user:s3cret@host/"],
], ids=repr)  # fmt: skip
def test_password_in_a_url_passed_as_the_agent_is_not_shown(agent: Any) -> None:  # noqa: ANN401 (the mistake under test)
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens(agent)

    assert "s3cret" not in str(caught.value)
    assert "@host/" in str(caught.value)
