"""Reads robots.txt for Scrapy's own middleware.

Needs the extra scrapy.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Self

from scrapy.robotstxt import RobotParser
from scrapy.utils.python import to_unicode

from robotsgate.errors import InvalidProductTokenError
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.robotstxt._robots_txt import RobotsTxt

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["RobotsGateParser"]

# Agents are the user's own, few; the bound only keeps a mistake from growing.
_MAX_AGENTS = 1_000


class RobotsGateParser(RobotParser):
    """A robots.txt as Scrapy's own middleware knows it.

    Name it in the setting ROBOTSTXT_PARSER to use only the parser. A User-Agent in
    which no product token can be found counts as "*".

    Attributes:
        robots_txt: the parsed file.
    """

    def __init__(self, robots_txt: RobotsTxt) -> None:
        """Answer from `robots_txt`."""
        self.robots_txt = robots_txt

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:  # noqa: ARG003 (Scrapy's)
        """The parser of a file."""
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether `user_agent` may fetch the absolute `url`.

        Raises:
            InvalidURLError: `url` is no absolute URL.
        """
        return self.robots_txt.can_fetch(_agent(user_agent), to_unicode(url))

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """Seconds between two requests that the file asks of `user_agent`."""
        return self.robots_txt.crawl_delay(_agent(user_agent))


@lru_cache(maxsize=_MAX_AGENTS)
def _agent(user_agent: str | bytes) -> str:
    """A User-Agent as a checker takes it: "*" where it names no product."""
    agent = to_unicode(user_agent, errors="replace")
    try:
        product_tokens(agent)
    except InvalidProductTokenError:
        return "*"
    return agent
