"""httpx2 versions of the classes in `httpx.py`; imported only when httpx2 is used."""

from __future__ import annotations

import httpx2

from robotsgate.integrations._door import (
    BodyInTurn,
    DisallowedRequestError,
    client_of_library,
)


class RobotsDisallowedError(DisallowedRequestError, httpx2.RequestError):
    """The httpx2 version of `robotsgate.integrations.httpx.RobotsDisallowedError`."""


class _Body(BodyInTurn, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    pass


CLIENT = client_of_library(RobotsDisallowedError, httpx2.RequestError, _Body)
