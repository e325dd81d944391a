"""What the wraps of all clients share: which requests pass unasked, and the error."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from robotsgate.errors import DisallowedError
from robotsgate.fetching._own_requests import is_own_request
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH
from robotsgate.urls._origin import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._checker import RobotsChecker

_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss"})


def passes_unasked(scheme: str, target: str) -> bool:
    """Whether a request may be sent without asking the checker.

    So pass the checker's own requests, any for /robots.txt, and those of schemes
    that have no robots.txt, which are left to the client.

    Args:
        scheme: of the URL, lower-case.
        target: its path with its query, as it is sent.
    """
    return is_own_request() or target == ROBOTS_TXT_PATH or scheme not in _SCHEMES


async def refusal(
    checker: RobotsChecker, agent: str | Sequence[str], url: str
) -> Verdict | None:
    """The verdict that refuses `url`; `None` where it may be fetched.

    Most requests are allowed and of known origins, where a look into memory takes a
    tenth of the time of a verdict.
    """
    answer = checker.peek(agent, url)
    if answer:
        return None
    verdict = await checker._check(agent, url, counted=answer)  # noqa: SLF001 (one package)
    return None if verdict else verdict


class DisallowedRequestError(DisallowedError):
    """A request that was not sent; also an error of its client."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), request=self.request), (self.verdict,)
