"""A web for tests, which answers from memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import anyio.lowlevel
import httpx

from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping


class FakeSite(httpx.AsyncBaseTransport):
    """An httpx transport that answers from memory for any number of origins.

    Hand it to `RobotsChecker(client=...)`, or as `transport` to the `AsyncClient` of
    httpx or httpx2.
    What is not served answers 404.

    Attributes:
        requests: the URLs that were asked for, in order.
        dials_nothing: that there is nothing for an address guard to see.
    """

    dials_nothing = True

    def __init__(self) -> None:
        """Serve nothing yet."""
        self.requests: list[str] = []
        self._answers: dict[str, tuple[int, dict[str, str], bytes] | Exception] = {}

    def serve(
        self,
        origin: str,
        body: bytes | str = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """From now on answer for the robots.txt of `origin`.

        Args:
            origin: a URL of it; its path does not matter.
            body: of the response; a `str` stands for its UTF-8.
            status: of the response, 100 to 999.
            headers: of the response.
        """
        content = body.encode() if isinstance(body, str) else body
        self._answers[Origin.from_url(origin).robots_url] = (
            status,
            dict(headers or {}),
            content,
        )

    def fail(self, origin: str, error: Exception) -> None:
        """From now on raise `error` when the robots.txt of `origin` is asked for."""
        self._answers[Origin.from_url(origin).robots_url] = error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer as told; lets other tasks run first, as a network would."""
        url = str(request.url)
        self.requests.append(url)
        await anyio.lowlevel.checkpoint()
        answer = self._answers.get(url, (404, {}, b""))
        if isinstance(answer, Exception):
            raise answer
        status, headers, body = answer
        # httpx2 refuses what httpx makes, and the other way round.
        library = sys.modules[type(request).__mro__[-2].__module__]
        response: type[httpx.Response] = library.Response
        return response(status, headers=headers, content=body)
