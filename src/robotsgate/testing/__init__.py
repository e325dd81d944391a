r"""Tools for testing crawlers: a clock that the test controls, and a fake web.

>>> import anyio
>>> from robotsgate import RobotsChecker
>>> from robotsgate.testing import FakeSite, ManualClock
>>> async def main():
...     site = FakeSite()
...     site.serve("https://example.com", "User-agent: *\nDisallow: /private")
...     async with RobotsChecker(client=site, clock=ManualClock()) as checker:
...         return await checker.can_fetch("ExampleBot", "https://example.com/private")
>>> anyio.run(main)
False
"""

from robotsgate.testing._fake_site import FakeSite
from robotsgate.testing._manual_clock import ManualClock

__all__ = ["FakeSite", "ManualClock"]
