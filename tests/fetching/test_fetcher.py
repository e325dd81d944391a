"""What is accepted as a client, and fetches through the caller's own `Fetcher`."""

from __future__ import annotations

import gzip
from contextvars import copy_context
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import aiohttp
import anyio.to_thread
import httpx
import pytest

from robotsgate import FailureKind, FetchedResponse
from robotsgate.caching._outcome import Outcome
from robotsgate.fetching._fetcher import is_own_request
from robotsgate.fetching._robots_fetch import sender_for
from tests.fetching.fetches import RULES, USER_AGENT, Followed, fetched
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextvars import Context


pytestmark = pytest.mark.anyio


class ScriptedFetcher:
    """A `Fetcher` that returns or raises the next item in its script."""

    def __init__(self, *script: FetchedResponse | Exception) -> None:
        self._script = list(script)
        self.calls: list[tuple[str, Sequence[tuple[str, str]], int]] = []
        self.saw_own_request: list[bool] = []

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        self.calls.append((url, headers, max_bytes))
        self.saw_own_request.append(is_own_request(url))
        response = self._script.pop(0)
        if isinstance(response, Exception):
            raise response
        return response


def response(
    status: int = 200, body: bytes = b"", *, is_decoded: bool = False, **headers: str
) -> FetchedResponse:
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return FetchedResponse(
        status=status, headers=pairs, body=body, is_decoded=is_decoded
    )


async def test_fetcher_is_called_with_url_headers_and_limit() -> None:
    fetcher = ScriptedFetcher(response(body=RULES))

    outcome = await fetched("http://a.test:8080", client=fetcher)

    assert outcome == Outcome(status=200, body=RULES)
    assert fetcher.calls == [
        (
            "http://a.test:8080/robots.txt",
            (
                ("User-Agent", USER_AGENT),
                ("Accept", "text/plain, */*;q=0.1"),
                ("Accept-Encoding", "gzip, deflate"),
            ),
            512_001,
        )
    ]


async def test_redirect_from_a_fetcher_is_followed_to_an_encoded_url() -> None:
    fetcher = ScriptedFetcher(
        response(302, LOCATION="//b\u00fccher.test/a b#c"), response(body=RULES)
    )

    outcome = await fetched("http://a.test", client=fetcher)

    assert outcome == Outcome(status=200, body=RULES, redirects=Followed(1))
    assert fetcher.calls[1][0] == "http://xn--bcher-kva.test/a%20b"


GZIPPED = gzip.compress(RULES)
PAGE = b"<title>Not found</title>"
RESPONSES: dict[str, tuple[FetchedResponse, Outcome]] = {
    "a coded body": (response(body=GZIPPED, Content_Encoding="gzip"),
        Outcome(status=200, body=RULES)),
    "a body that the client has decoded": (response(body=RULES,
        Content_Encoding="gzip", is_decoded=True), Outcome(status=200, body=RULES)),
    "a body that is too long": (response(body=b"x" * 999_999, Age="5"),
        Outcome(status=200, body=b"x" * 512_001, headers={"age": "5"})),
    "a body that does not fit its coding": (response(body=RULES,
        Content_Encoding="gzip"), Outcome(failure=FailureKind.CODING, error=ANY)),
    "an error page": (response(500, PAGE), Outcome(status=500, body=PAGE)),
    "an error page that does not fit its coding": (response(500, PAGE,
        Content_Encoding="gzip"), Outcome(status=500)),
    "a page for a missing file": (response(404, PAGE), Outcome(status=404)),
}  # fmt: skip


@pytest.mark.parametrize(("returned", "outcome"), RESPONSES.values(), ids=RESPONSES)
async def test_fetchers_response_becomes_an_outcome(
    returned: FetchedResponse, outcome: object
) -> None:
    assert await fetched("http://a.test", client=ScriptedFetcher(returned)) == outcome


async def test_unexpected_exception_in_a_fetcher_is_raised() -> None:
    with pytest.raises(KeyError):
        await fetched("http://a.test", client=ScriptedFetcher(KeyError()))


# --- the checker's own requests -------------------------------------------------


async def test_request_is_the_checkers_own_only_during_its_fetch() -> None:
    fetcher = ScriptedFetcher(response(302, Location="/a"), OSError())

    await fetched("http://a.test", client=fetcher)

    assert fetcher.saw_own_request == [True, True]
    assert not is_own_request(fetcher.calls[0][0])


async def test_checkers_own_request_is_recognized_in_a_thread_of_the_fetch() -> None:
    class InThread(ScriptedFetcher):
        async def get(
            self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
        ) -> FetchedResponse:
            seen.append(await anyio.to_thread.run_sync(is_own_request, url))
            seen.append(await anyio.to_thread.run_sync(is_own_request, f"{url}x"))
            return await super().get(url, headers, max_bytes=max_bytes)

    seen: list[bool] = []

    await fetched("http://a.test", client=InThread(response()))

    assert seen == [True, False]


async def test_task_that_outlives_the_fetch_has_no_own_request() -> None:
    class StartsTask(ScriptedFetcher):
        async def get(
            self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
        ) -> FetchedResponse:
            contexts.append(copy_context())
            return await super().get(url, headers, max_bytes=max_bytes)

    contexts: list[Context] = []
    fetcher = StartsTask(response())

    await fetched("http://a.test", client=fetcher)

    assert fetcher.saw_own_request == [True]
    assert not contexts[0].run(is_own_request, fetcher.calls[0][0])


# --- what is accepted -----------------------------------------------------------


@cases("client", {
    "an object": (object(),),
    "a URL": ("http://proxy",),
    "a blocking httpx client": (httpx.Client(),),
    "a client class": (httpx.AsyncClient,),
    "a fetcher class": (ScriptedFetcher,),
    "a session class": (aiohttp.ClientSession,),
})  # fmt: skip
def test_object_that_is_not_a_client_is_rejected(client: object) -> None:
    with pytest.raises(TypeError, match="expected an AsyncClient or async transport"):
        sender_for(client)


def test_session_with_a_different_get_is_not_a_fetcher() -> None:
    class Session:
        def get(self, url: str, **options: Any) -> object: ...  # noqa: ANN401

    with pytest.raises(TypeError, match="or a Fetcher, got"):
        sender_for(Session())


@pytest.mark.parametrize("status", [200, 301])
async def test_headers_of_the_wrong_type_are_a_mistake_of_the_fetcher(
    status: int,
) -> None:
    wrong: Any = [(b"Age", b"5")]
    fetcher = ScriptedFetcher(
        FetchedResponse(status=status, headers=wrong, body=b"", is_decoded=True)
    )

    with pytest.raises(TypeError, match="headers to be a mapping or pairs of str"):
        await fetched("http://a.test", client=fetcher)
