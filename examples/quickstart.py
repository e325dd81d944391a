"""Check URLs on well-behaved sites and on failing ones.

Without arguments, this starts small sites on this machine, each of which answers
differently, and checks a few of their URLs. With arguments, it checks those URLs:

    python examples/quickstart.py https://example.com/private https://example.org/
"""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

import anyio
from example_site import serving

from robotsgate import RobotsChecker, RobotsError, SystemClock
from robotsgate.testing import ManualClock

if TYPE_CHECKING:
    from example_site import Pages

AGENT = "ExampleBot"
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"

RULES = """\
# Everyone stays out of /private, except for one page.
User-agent: *
Disallow: /private
Allow: /private/press.html
Disallow: /*.pdf$
Crawl-delay: 2

User-agent: GreedyBot
Disallow: /
"""


async def ask_about(urls: list[str]) -> None:
    """Check URLs on the real web."""
    async with RobotsChecker(user_agent=USER_AGENT) as checker:
        for url in urls:
            await ask(checker, AGENT, url)


async def ask(checker: RobotsChecker, agent: str, url: str) -> None:
    """Check a URL, and print the verdict as a sentence."""
    print(f"{agent}, {url}")
    try:
        verdict = await checker.check(agent, url)
    except RobotsError as error:
        print_indented(f"cannot be checked: {error}")
        return
    print_indented(str(verdict))
    for location, status in verdict.redirects:
        print_indented(f"(a {status} led to {location})")
    print()


def print_indented(text: str) -> None:
    """Print `text`, wrapped for a terminal with 80 columns."""
    lines = textwrap.wrap(text, 76, break_long_words=False, break_on_hyphens=False)
    print(textwrap.indent("\n".join(lines), "  "))


async def ask_the_local_sites() -> None:
    """Check a URL for each way in which a robots.txt fetch can end."""
    # A clock that the example advances, so that a day passes instantly.
    clock = ManualClock(SystemClock().now())
    async with RobotsChecker(user_agent=USER_AGENT, clock=clock) as checker:
        pages: dict[str, str | tuple[int, str]] = {"/robots.txt": RULES}
        with serving(pages) as site:
            print("== A site with rules: one request is enough for all checks\n")
            await ask(checker, AGENT, f"{site}/private/diary")
            await ask(checker, AGENT, f"{site}/private/press.html")
            await ask(checker, AGENT, f"{site}/report.pdf")
            await ask(checker, AGENT, f"{site}/report.pdf?page=2")
            await ask(checker, "GreedyBot/2.1", f"{site}/")
            print(f"Crawl-delay: {await checker.crawl_delay(AGENT, site)} s\n")

            print("== A day later, the server is down: the cached copy still applies\n")
            pages["/robots.txt"] = 503, ""
            clock.advance(25 * 60 * 60)
            await ask(checker, AGENT, f"{site}/private/diary")

        for title, answers in SITES.items():
            print(f"== {title}\n")
            with serving(answers) as site:
                await ask(checker, AGENT, f"{site}/private/diary")

        with serving({}) as gone:
            pass
        print("== No server at all: disallowed\n")
        await ask(checker, AGENT, f"{gone}/private/diary")


SITES: dict[str, Pages] = {
    "No robots.txt: allowed": {},
    "A redirect to another file: its rules apply": {
        "/robots.txt": (301, "/rules.txt"),
        "/rules.txt": RULES,
    },
    "A redirect loop: treated as no robots.txt, so allowed": {
        "/robots.txt": (302, "/robots.txt")
    },
    "Too many requests: disallowed": {"/robots.txt": (429, "")},
    "A server error, and no cached copy: disallowed": {"/robots.txt": (500, "")},
}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(ask_about, sys.argv[1:])
    else:
        anyio.run(ask_the_local_sites)
