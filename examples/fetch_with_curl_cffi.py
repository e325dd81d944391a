"""Fetch robots.txt with curl_cffi, a client that robotsgate has no integration for.

pip install . curl_cffi
python examples/fetch_with_curl_cffi.py
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from curl_cffi.const import CurlECode
from curl_cffi.curl import CURL_WRITEFUNC_ERROR
from curl_cffi.requests import AsyncSession, Response
from curl_cffi.requests.exceptions import RequestException
from example_site import PATHS, serving

from robotsgate import FailureKind, FetchedResponse, FetchFailedError, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Sequence

USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"

# --- The fetcher

KINDS = {
    CurlECode.COULDNT_RESOLVE_HOST: FailureKind.NAME_RESOLUTION,
    CurlECode.COULDNT_CONNECT: FailureKind.CONNECT,
    CurlECode.SSL_CONNECT_ERROR: FailureKind.TLS,
    CurlECode.PEER_FAILED_VERIFICATION: FailureKind.TLS,
    CurlECode.OPERATION_TIMEDOUT: FailureKind.TIMEOUT,
    CurlECode.GOT_NOTHING: FailureKind.TRANSFER,
    CurlECode.RECV_ERROR: FailureKind.TRANSFER,
    CurlECode.PARTIAL_FILE: FailureKind.PROTOCOL,
    CurlECode.UNSUPPORTED_PROTOCOL: FailureKind.PROTOCOL,
}


class CurlFetcher:
    """A `Fetcher` that uses a session without headers, cookies or credentials."""

    def __init__(self, session: AsyncSession[Response]) -> None:
        """Fetch with `session`; the caller closes it."""
        self._session = session

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`; the body is returned undecoded."""
        body = bytearray()

        def take(piece: bytes) -> int:
            body.extend(piece)
            return len(piece) if len(body) < max_bytes else CURL_WRITEFUNC_ERROR

        try:
            response = await self._session.get(
                url,
                headers=dict(headers),
                content_callback=take,
                accept_encoding=None,  # robotsgate decodes the body, up to a limit
                allow_redirects=False,
                default_headers=False,
                discard_cookies=True,
                quote=False,
            )
        except RequestException as error:
            if len(body) < max_bytes:
                kind = KINDS.get(CurlECode(error.code), FailureKind.OTHER)
                raise FetchFailedError(str(error), kind=kind) from error
            response = error.response  # `take` ended the transfer
        return FetchedResponse(
            status=response.status_code,
            headers=[
                (name, value or "") for name, value in response.headers.multi_items()
            ],
            body=bytes(body),
            is_decoded=False,
        )


# --- The site


async def main(origin: str) -> None:
    """Check some URLs."""
    async with (
        AsyncSession(impersonate="chrome", max_clients=100) as session,
        RobotsChecker(user_agent=USER_AGENT, client=CurlFetcher(session)) as checker,
    ):
        for path in PATHS:
            print(f"{path}: {await checker.check('ExampleBot', origin + path)}")


if __name__ == "__main__":
    with serving() as origin:
        asyncio.run(main(origin))
