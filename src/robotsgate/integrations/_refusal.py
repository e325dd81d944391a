"""Shared by all integrations: which requests pass without a question, and the error."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from robotsgate.checking._checker import RobotsChecker
from robotsgate.errors import DisallowedError
from robotsgate.fetching._fetcher import is_own_request
from robotsgate.politeness._gate import PolitenessGate
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH
from robotsgate.urls._origin import DEFAULT_PORTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._verdict import Verdict

_SCHEMES = frozenset({*DEFAULT_PORTS, "ws", "wss"})


def check_arguments(checker: object, gate: object = None) -> None:
    """Refuse what is not a checker or a gate before the first request is sent.

    Raises:
        TypeError: `checker` is not a `robotsgate.RobotsChecker`, or `gate` is neither
            `None` nor a `PolitenessGate`.
    """
    if not isinstance(checker, RobotsChecker):
        raise TypeError(f"expected a robotsgate.RobotsChecker, got {checker!r}")
    if not isinstance(gate, PolitenessGate | None):
        raise TypeError(f"expected gate to be a PolitenessGate, got {gate!r}")


def passes_unasked(scheme: str, target: str) -> bool:
    """Whether a request may be sent without asking the checker.

    That holds for the checker's own requests, for /robots.txt, and for schemes that
    have no robots.txt, which the client handles.

    Args:
        scheme: that of the URL, in lower case.
        target: the path with the query, as it is sent.
    """
    return is_own_request() or target == ROBOTS_TXT_PATH or scheme not in _SCHEMES


async def refusal(
    checker: RobotsChecker, agent: str | Sequence[str], url: str
) -> Verdict | None:
    """The verdict that refuses `url`; `None` if it may be fetched.

    Looks into memory first, which takes a tenth of the time of a verdict and is enough
    for most requests.
    """
    answer = checker.peek(agent, url)
    if answer:
        return None
    verdict = await checker._check(agent, url, is_counted=answer is False)  # noqa: SLF001 (one package)
    return None if verdict else verdict


class DisallowedRequestError(DisallowedError):
    """A request that was not sent; also an error of its client."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request = request

    def __reduce__(self) -> tuple[object, ...]:
        """Let it be pickled, for pools of processes."""
        return partial(type(self), request=self.request), (self.verdict,)
