"""The classes of `httpx.py` for httpx2. Imported when the first request of it comes."""

from __future__ import annotations

from typing import Any, cast

import httpx2

from robotsgate.integrations._refusal import DisallowedRequestError
from robotsgate.integrations.httpx import Classes, StreamInTurn


class RobotsDisallowedError(DisallowedRequestError, httpx2.RequestError):
    """As `robotsgate.integrations.httpx.RobotsDisallowedError`, for httpx2."""


class _Stream(StreamInTurn, httpx2.AsyncByteStream):
    pass


CLASSES = Classes(
    error=RobotsDisallowedError,
    # The same classes, of another library.
    url_error=cast("Any", httpx2.RequestError),
    response=cast("Any", httpx2.Response),
    stream=_Stream,
)
