"""httpx2 versions of the classes in `httpx.py`; imported only when httpx2 is used."""

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
    """The httpx2 version of `robotsgate.integrations.httpx.RobotsDisallowedError`."""


class _Body(BodyInTurn, httpx2.AsyncByteStream):
    pass


class _SyncBody(SyncBodyInTurn, httpx2.SyncByteStream):
    pass


CLASSES = HttpxClasses(
    error=RobotsDisallowedError,
    # An equivalent class from another library.
    url_error=cast("Any", httpx2.RequestError),
    body=_Body,
    sync_body=_SyncBody,
)
