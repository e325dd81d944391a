"""Fixtures for all tests: event loops, servers, certificates and keys."""

from __future__ import annotations

import itertools
import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import httpx
import httpx2
import pytest
import trustme
from hypothesis import HealthCheck, settings

from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.loopback import LoopbackServer
from tests.servers.valkey import Valkey, running_valkey

pytest.register_assert_rewrite("tests.stores.contracts")

# The same examples in every run; `--hypothesis-profile many` tries more. Hypothesis
# measures real time for `too_slow`, so that depends on what else the machine does.
settings.register_profile(
    "few",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("many", settings.get_profile("few"), max_examples=500)
settings.load_profile("few")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.loopback import Answer

_NUMBERS = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Reject pytest-asyncio's auto mode, which runs trio tests on asyncio."""
    if "auto" in {config.getoption("asyncio_mode"), config.getini("asyncio_mode")}:
        raise pytest.UsageError("expected asyncio_mode to be strict, got auto")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Makes `pytest.mark.anyio` run each test on both event loops."""
    backend: str = request.param
    return backend


@pytest.fixture
def serve() -> Iterator[Callable[..., LoopbackServer]]:
    """Starts servers with `serve(answer, **options)`; they stop after the test."""
    with ExitStack() as servers:

        def start(answer: Answer, **options: Any) -> LoopbackServer:  # noqa: ANN401 (those of LoopbackServer)
            return servers.enter_context(LoopbackServer(answer, **options))

        yield start


@pytest.fixture(scope="session")
def certificate_authority() -> trustme.CA:
    """Signs the certificates of the tests' servers."""
    return trustme.CA()


@pytest.fixture(scope="session", autouse=True)
def few_authorities() -> Iterator[None]:
    """Make clients trust only one, unused authority, as loading all of them is slow."""
    with (
        trustme.CA().cert_pem.tempfile() as path,
        pytest.MonkeyPatch.context() as variables,
    ):
        variables.setenv("SSL_CERT_FILE", path)
        yield


@pytest.fixture(scope="session", autouse=True)
def patient_clients() -> Iterator[None]:
    """Give servers more than httpx's 5 s, which a busy machine may take."""
    with pytest.MonkeyPatch.context() as patch:
        for library in (httpx, httpx2):
            for name in ("connect", "read", "write", "pool"):
                default = library._config.DEFAULT_TIMEOUT_CONFIG
                patch.setattr(default, name, PATIENCE_SECONDS)
        yield


@pytest.fixture(scope="session")
def server_tls(certificate_authority: trustme.CA) -> ssl.SSLContext:
    """For a server at `127.0.0.1` or `localhost`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate_authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return context


@pytest.fixture(scope="session")
def client_tls(certificate_authority: trustme.CA) -> ssl.SSLContext:
    """For a client that trusts only the tests' servers."""
    context = ssl.create_default_context()
    certificate_authority.configure_trust(context)
    return context


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    """A server shared by the tests in a module; each test has its own key prefix."""
    with running_valkey() as server:
        yield server


@pytest.fixture
def prefix() -> str:
    """A key prefix that no other test uses."""
    return f"test{next(_NUMBERS)}:"


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A server that a test may stop, fill, pause or kill."""
    with running_valkey() as server:
        yield server
