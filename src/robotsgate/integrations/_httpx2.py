"""The classes of `httpx.py` for httpx2. Imported at the first request of httpx2."""

from __future__ import annotations

from typing import Any, cast

import httpx2

from robotsgate.integrations._wrapping import (
    BodyInTurn,
    DisallowedRequestError,
    HttpxClasses,
    SyncBodyInTurn,
)


class RobotsDisallowedError(DisallowedRequestError, httpx2.RequestError):
    """Like `robotsgate.integrations.httpx.RobotsDisallowedError`, for httpx2."""


class _Body(BodyInTurn, httpx2.AsyncByteStream):
    pass


class _SyncBody(SyncBodyInTurn, httpx2.SyncByteStream):
    pass


CLASSES = HttpxClasses(
    error=RobotsDisallowedError,
    # The same classes, of another library.
    url_error=cast("Any", httpx2.RequestError),
    response=cast("Any", httpx2.Response),
    body=_Body,
    sync_body=_SyncBody,
)
