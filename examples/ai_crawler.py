"""Decide whether to keep, train on or skip each page of a site, and why.

Combines robots.txt, the page's headers and its META tags, on a small site that this
example starts on this machine.
"""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import anyio
import httpx
from example_site import running

from robotsgate import RobotsChecker
from robotsgate.page import PageDirectives
from robotsgate.robotstxt import Preference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from robotsgate import UsagePreferences
    from robotsgate.robotstxt import CategoryPreference

# --- The crawler ------------------------------------------------------------------

AGENT = "ExampleBot"
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"


async def decide(checker: RobotsChecker, client: httpx.AsyncClient, url: str) -> str:
    """What to do with the page at `url`, and why."""
    verdict = await checker.check(AGENT, url)
    if not verdict:
        return f"skip, {verdict}"
    page = await client.get(url)
    directives = PageDirectives.combined(
        PageDirectives.from_html(page.content, AGENT, encoding=page.charset_encoding),
        PageDirectives.from_headers(page.headers, AGENT),
    )
    if not directives.may_index(time.time()):
        return f"skip, the page says: {directives.explain()}"
    usages = await checker.usage_preferences(AGENT, url, headers=page.headers)
    reasons = list(reasons_against_training(usages, directives))
    if reasons:
        return f"keep, but do not train: {', '.join(reasons)}"
    return "keep"


def reasons_against_training(
    usages: UsagePreferences, directives: PageDirectives
) -> Iterator[str]:
    """The places where the site asks not to train a model on the page."""
    vocabularies: tuple[tuple[str, Mapping[str, CategoryPreference], str], ...] = (
        ("Content-Usage", usages.content_usage, "train-ai"),
        ("Content-Signal", usages.content_signal, "ai-train"),
    )
    for name, vocabulary, category in vocabularies:
        stated = vocabulary[category]
        if stated.preference is Preference.DISALLOW:
            place = "a header" if stated.line is None else f"line {stated.line}"
            yield f"{name} in {place} disallows {category}"
    for name in ("noai", "noml"):
        if name in directives.directives:
            yield f"{name} in {directives.directives[name].source}"
    if directives.tdm_reservation is Preference.DISALLOW:
        yield f"mining reserved by {directives.directives['tdm-reservation'].source}"
    for url in usages.license:
        yield f"the license {url} has to be read first"


# --- The site ---------------------------------------------------------------------

ROBOTS_TXT = """\
User-agent: *
Disallow: /diary
Content-Usage: train-ai=y
Content-Usage: /poems/ train-ai=n
"""
PAGES: dict[str, tuple[dict[str, str], str]] = {
    "/robots.txt": ({}, ROBOTS_TXT),
    "/": ({}, "<title>Welcome</title>"),
    "/diary/monday": ({}, "Rain."),
    "/poems/rain": ({}, "It rains."),
    "/draft": ({}, '<meta name="robots" content="noindex"><title>Draft</title>'),
    "/old": ({"X-Robots-Tag": "unavailable_after: 2020-01-01"}, "Old news."),
    "/photo": ({"X-Robots-Tag": "ExampleBot: noai"}, "A cat."),
    "/letter": ({"Content-Usage": "train-ai=n"}, "Dear reader"),
    "/novel": ({"TDM-Reservation": "1"}, "Chapter one"),
}


class Handler(BaseHTTPRequestHandler):
    """Serves `PAGES`."""

    def do_GET(self) -> None:
        """Send the page with its headers."""
        headers, page = PAGES[self.path]
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


async def main() -> None:
    """Print the decision for each page of the site."""
    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as origin:
        async with (
            httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
            RobotsChecker(user_agent=USER_AGENT) as checker,
        ):
            for path in list(PAGES)[1:]:
                decision = await decide(checker, client, origin + path)
                print(f"{path}: {decision.replace(origin, '')}")


if __name__ == "__main__":
    anyio.run(main)
