"""Make crawl4ai obey robots.txt, on a small site on this machine.

pip install '.[aiohttp,crawl4ai]'
crawl4ai-setup  # downloads a browser
python examples/wrap_crawl4ai.py
"""

from __future__ import annotations

import asyncio
from typing import Any

from crawl4ai import (
    AsyncWebCrawler,
    BrowserConfig,
    CrawlerRunConfig,
    HTTPCrawlerConfig,
)
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from example_site import Pages, serving

from robotsgate import PolitenessGate, RobotsChecker
from robotsgate.integrations.aiohttp import robots_middleware
from robotsgate.integrations.crawl4ai import RobotsParser

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


# --- With a browser
async def crawl(urls: list[str]) -> None:
    """Print the outcome for each page."""
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        AsyncWebCrawler(config=BrowserConfig(user_agent=USER_AGENT)) as crawler,
    ):
        parser = RobotsParser(checker, "ExampleBot")
        crawler.robots_parser = parser
        crawler.crawler_strategy.set_hook("on_page_context_created", parser.check_page)
        crawler.crawler_strategy.set_hook("before_return_html", parser.check_html)
        config = CrawlerRunConfig(check_robots_txt=True)
        for url in urls:
            result = await crawler.arun(url, config)
            print(url, result.success, result.error_message or "")


# --- Without a browser
async def crawl_without_browser(urls: list[str]) -> None:
    """Do the same over plain HTTP, with a turn for each request."""
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, "ExampleBot") as gate,
    ):
        obey = robots_middleware(checker, "ExampleBot", gate=gate)

        def add_middleware(_: str, options: dict[str, Any]) -> None:
            options["middlewares"] = [obey]

        headers = {"User-Agent": USER_AGENT}
        strategy = AsyncHTTPCrawlerStrategy(HTTPCrawlerConfig(headers=headers))
        strategy.set_hook("before_request", add_middleware)
        async with AsyncWebCrawler(crawler_strategy=strategy) as crawler:
            for url in urls:
                result = await crawler.arun(url)
                print(url, result.success, result.error_message or "")


# --- The site
TEXT = "<p>" + "Much to read about crawlers. " * 20
PAGES: Pages = {
    "/robots.txt": "User-agent: *\nDisallow: /diary\n",
    "/about": TEXT,
    "/diary": TEXT,
    "/today": (302, "/diary"),
}

if __name__ == "__main__":
    with serving(PAGES) as origin:
        addresses = [origin + path for path in ("/about", "/diary", "/today")]
        asyncio.run(crawl(addresses))
        asyncio.run(crawl_without_browser(addresses))
