"""The store of a fleet, on a real Valkey server, alone and under checkers."""

from __future__ import annotations

import dataclasses
import gc
import itertools
import logging
import math
import ssl
import tempfile
import traceback
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import anyio.lowlevel
import pytest
from coredis import Redis

from robotsgate import Policy, RobotsChecker, StoreError, SystemClock
from robotsgate.stores import _lasting_client
from robotsgate.stores.redis import RedisStore
from robotsgate.testing import ManualClock
from robotsgate.testing.stores import (
    NOW,
    ORIGIN,
    LeaseContract,
    StoreContract,
    entry_of,
)
from tests.cancellation import cancelled_at
from tests.checking.builders import (
    AGENT,
    DAY,
    HOUR,
    PRIVATE,
    PUBLIC,
    GatedSite,
    checker_of,
    site_of,
)
from tests.servers.answers import Raw
from tests.servers.loopback import Connection, LoopbackServer, dead_port
from tests.servers.valkey import Valkey, running_valkey, tls_before
from tests.stores import child

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    import trustme

    from robotsgate import Entry, Store
    from robotsgate.testing import FakeSite

pytestmark = [
    pytest.mark.anyio,
    # coredis leaves the buffers of a connection that failed to the collector.
]

_NUMBERS = itertools.count()

# Far more than anything here takes.
_PATIENCE_SECONDS = 10.0

_OTHER = "http://other.example"

# What a password may consist of, and a URL may not.
_PASSWORD = "p@ss/w:rd %#?"


def entry_about(origin: str) -> Entry:
    """The one entry of `origin`, which stays for as long as any test takes."""
    return dataclasses.replace(child.entry_about(origin), retain_until=NOW + DAY)


OPERATIONS: dict[str, Callable[[RedisStore], Awaitable[object]]] = {
    "get": lambda store: store.get(ORIGIN),
    "put": lambda store: store.put(entry_about(ORIGIN)),
    "delete": lambda store: store.delete(ORIGIN),
    "acquire": lambda store: store.acquire(ORIGIN, "one", 60.0),
    "release": lambda store: store.release(ORIGIN, "one"),
}
WRITING = [name for name in OPERATIONS if name not in {"get", "release"}]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """The collector finds what coredis has left here, and in no other module."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    """A server that many tests share; each has a prefix of its own."""
    with running_valkey() as server:
        yield server


@pytest.fixture
def own_valkey() -> Iterator[Valkey]:
    """A server to stop, to fill and to pause."""
    with running_valkey() as server:
        yield server


@pytest.fixture
def prefix() -> str:
    return f"test{next(_NUMBERS)}:"


@pytest.fixture(params=[True, False], ids=["kept connections", "a connection each"])
def opened(request: pytest.FixtureRequest) -> Callable[[RedisStore], Any]:
    """Uses a store as a context manager, or does without."""
    return _as_it_is if request.param else nullcontext


def _as_it_is(store: RedisStore) -> AbstractAsyncContextManager[RedisStore]:
    return store


class TestRedisStore(StoreContract):
    keeps_what_is_useless = False

    @pytest.fixture
    def make_store(self, valkey: Valkey) -> Callable[[], Store]:
        return lambda: RedisStore(valkey.url, prefix=f"test{next(_NUMBERS)}:")


class TestRedisLease(LeaseContract):
    @pytest.fixture
    def make_lease(self, valkey: Valkey, prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(valkey.url, prefix=prefix)


class TestExpiry:
    @pytest.mark.parametrize("has_lease", [False, True])
    @pytest.mark.parametrize(
        ("retain_until", "shortest", "longest"),
        [
            (NOW + DAY, DAY - 60, DAY),
            (NOW + 31 * DAY, 31 * DAY - 60, 31 * DAY),
            (NOW + 60.0005, 50, 60.001),
            (NOW - 5, 0, 1),
            (NOW, 0, 1),
            (-1e300, 0, 1),
            (1e300, 99 * 365 * DAY, 101 * 365 * DAY),
        ],
        ids=["a day", "a month", "a minute", "over", "now", "never", "for ages"],
    )
    async def test_server_drops_an_entry_when_nothing_can_use_it(
        self,
        valkey: Valkey,
        prefix: str,
        *,
        has_lease: bool,
        retain_until: float,
        shortest: float,
        longest: float,
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            if has_lease:
                await store.acquire(ORIGIN, "one", 60.0)
            await store.put(entry_of(retain_until=retain_until))

        left = valkey.ask("PTTL", prefix + ORIGIN)
        assert isinstance(left, int)
        # -2: it has gone already.
        assert shortest <= left / 1_000 <= longest or (left == -2 and shortest == 0)

    @pytest.mark.parametrize("has_lease", [False, True])
    async def test_entry_that_is_kept_for_ever_has_no_end(
        self, valkey: Valkey, prefix: str, *, has_lease: bool
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.put(entry_of(retain_until=NOW + 1))
            if has_lease:
                await store.acquire(ORIGIN, "one", 60.0)
                await store.get(ORIGIN)
            await store.put(entry_of(retain_until=math.inf))

        assert valkey.ask("PTTL", prefix + ORIGIN) == -1

    async def test_entry_that_nothing_can_use_vanishes(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.put(entry_of(retain_until=NOW - DAY))
            with anyio.fail_after(_PATIENCE_SECONDS):
                while await store.get(ORIGIN):
                    await anyio.lowlevel.checkpoint()

        assert valkey.ask("EXISTS", prefix + ORIGIN) == 0

    async def test_lease_ends_by_itself(self, valkey: Valkey, prefix: str) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.acquire(ORIGIN, "one", 45.0)

        left = valkey.ask("PTTL", f"{prefix}lease:{ORIGIN}")
        assert isinstance(left, int)
        assert 35_000 < left <= 45_000


class TestKeys:
    async def test_keys_are_the_prefix_and_the_origin(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.put(entry_of(retain_until=NOW + DAY))
            await store.acquire(_OTHER, "one", 60.0)

        keys = valkey.ask("KEYS", f"{prefix}*")
        assert isinstance(keys, list)
        assert set(keys) == {prefix + ORIGIN, f"{prefix}lease:{_OTHER}"}

    async def test_prefix_names_the_program_unless_told_otherwise(
        self, own_valkey: Valkey
    ) -> None:
        async with RedisStore(own_valkey.url) as store:
            await store.put(entry_of(retain_until=NOW + DAY))

        assert own_valkey.ask("KEYS", "*") == [f"robotsgate:{ORIGIN}"]

    @pytest.mark.parametrize("operation", OPERATIONS)
    @pytest.mark.parametrize("has_lease", [False, True])
    async def test_each_command_is_about_one_key(
        self, valkey: Valkey, prefix: str, operation: str, *, has_lease: bool
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            if has_lease:
                await store.acquire(ORIGIN, "one", 60.0)
            with valkey.monitored() as seen:
                await OPERATIONS[operation](store)

        commands = [
            {word for word in line.split('"') if word.startswith(prefix)}
            for line in seen
            if prefix in line
        ]
        # A lease brings what there is of the entry with it: a command of its own.
        assert 1 <= len(commands) <= 4
        assert all(len(keys) == 1 for keys in commands)

    async def test_purge_asks_the_server_nothing(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.put(entry_of(retain_until=NOW + DAY))
            with valkey.monitored() as seen:
                dropped = await store.purge(math.inf)

        assert dropped == 0
        assert seen == [line for line in seen if prefix not in line]
        assert valkey.ask("EXISTS", prefix + ORIGIN) == 1


@pytest.fixture
async def octets(valkey: Valkey, prefix: str) -> bytes:
    """What an entry of `ORIGIN` is in the server, which has it."""
    async with RedisStore(valkey.url, prefix=prefix) as store:
        await store.put(entry_of(retain_until=NOW + DAY))
    async with Redis("127.0.0.1", valkey.port) as client:
        found = await client.get(prefix + ORIGIN)
    assert found is not None
    return found


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "half a stamp": lambda octets: octets[:4],
    "only a stamp": lambda octets: octets[:8],
    "no end": lambda octets: octets[:-1],
    "more behind": lambda octets: octets + b"x",
    "a wrong bit": lambda octets: octets[:20] + bytes([octets[20] ^ 1]) + octets[21:],
    "zeros": lambda octets: octets[:9] + bytes(len(octets) - 9),
}


class TestStoredOctets:
    async def test_entry_of_another_version_is_a_miss_that_is_told_once(
        self,
        valkey: Valkey,
        prefix: str,
        octets: bytes,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        later = octets[:8] + b"\x02" + octets[9:]
        valkey.ask("SET", prefix + ORIGIN, later)
        valkey.ask("SET", prefix + _OTHER, later)

        async with RedisStore(valkey.url, prefix=prefix) as store:
            with caplog.at_level(logging.WARNING, logger="robotsgate"):
                found = [await store.get(ORIGIN), await store.get(_OTHER)]

        assert found == [None, None]
        assert len(caplog.records) == 1
        assert "version 1, got 2" in caplog.text

    @pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
    async def test_damaged_entry_raises_and_is_replaced(
        self, valkey: Valkey, prefix: str, octets: bytes, damage: Callable[..., bytes]
    ) -> None:
        valkey.ask("SET", prefix + ORIGIN, damage(octets))
        new = entry_of(body=b"Disallow: /new", retain_until=NOW + DAY)

        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.acquire(ORIGIN, "one", 60.0)
            with pytest.raises(StoreError):
                await store.get(ORIGIN)
            await store.put(new)
            found = await store.get(ORIGIN)

        assert found == new

    async def test_key_of_another_type_raises(
        self, valkey: Valkey, prefix: str
    ) -> None:
        valkey.ask("RPUSH", prefix + ORIGIN, "a", "b")

        async with RedisStore(valkey.url, prefix=prefix) as store:
            with pytest.raises(StoreError, match="wrong kind of value"):
                await store.get(ORIGIN)

    async def test_entry_under_the_key_of_another_origin_is_refused(
        self, valkey: Valkey, prefix: str, octets: bytes
    ) -> None:
        valkey.ask("SET", prefix + _OTHER, octets)

        async with RedisStore(valkey.url, prefix=prefix) as store:
            with pytest.raises(StoreError):
                await store.get(_OTHER)

    async def test_checker_fetches_in_the_place_of_a_damaged_entry(
        self, valkey: Valkey, prefix: str, octets: bytes
    ) -> None:
        valkey.ask("SET", prefix + ORIGIN, octets[:-1])
        site = site_of()

        async with (
            RedisStore(valkey.url, prefix=prefix) as store,
            checker_of(site, store=store) as checker,
        ):
            answer = await checker.can_fetch(AGENT, PRIVATE)
            found = await store.get(ORIGIN)

        assert not answer
        assert len(site.requests) == 1
        assert found is not None


class TestAuthentication:
    @pytest.fixture
    def guarded(self) -> Iterator[Valkey]:
        """A server with a password."""
        with running_valkey(requirepass=_PASSWORD) as server:
            yield server

    async def test_password_may_hold_what_is_percent_encoded(
        self, guarded: Valkey
    ) -> None:
        url = guarded.url.replace("//", f"//:{quote(_PASSWORD, safe='')}@")

        async with RedisStore(url) as store:
            await store.put(entry_of(retain_until=NOW + DAY))
            found = await store.get(ORIGIN)

        assert found is not None

    @pytest.mark.parametrize("login", ["", "wr0ng:wr0ng@", ":wr0ng@"])
    async def test_wrong_password_raises_without_showing_it(
        self, guarded: Valkey, login: str, opened: Callable[..., Any]
    ) -> None:
        url = guarded.url.replace("//", f"//{login}")

        store = RedisStore(url)
        async with opened(store):
            with pytest.raises(StoreError) as raised:
                await store.get(ORIGIN)

        assert "wr0ng" not in "".join(traceback.format_exception(raised.value))

    async def test_user_needs_few_rights_and_only_for_the_prefix(
        self, own_valkey: Valkey
    ) -> None:
        own_valkey.ask(
            *("ACL", "SETUSER", "crawler", "on", ">secret", "~robotsgate:*"),
            *("-@all", "+get", "+set", "+getrange", "+del", "+eval"),
        )
        url = own_valkey.url.replace("//", "//crawler:secret@")
        entry = entry_of(retain_until=NOW + DAY)

        async with RedisStore(url) as store:
            for operation in OPERATIONS.values():
                await operation(store)
            await store.acquire(ORIGIN, "one", 60.0)
            await store.put(entry)
            found = await store.get(ORIGIN)
        async with RedisStore(url, prefix="another:") as store:
            with pytest.raises(StoreError):
                await store.get(ORIGIN)

        assert found == entry

    async def test_database_of_the_url_is_used(self, own_valkey: Valkey) -> None:
        async with RedisStore(f"{own_valkey.url}/3") as store:
            await store.put(entry_of(retain_until=NOW + DAY))

        assert "db3:keys=1" in str(own_valkey.ask("INFO", "keyspace"))


class TestTLS:
    @pytest.fixture
    def url(self, valkey: Valkey, server_tls: ssl.SSLContext) -> Iterator[str]:
        """Of a port with TLS before the server."""
        with tls_before(valkey, server_tls) as proxy:
            yield f"rediss://127.0.0.1:{proxy.port}"

    @pytest.fixture
    def url_of_another(
        self, valkey: Valkey, certificate_authority: trustme.CA
    ) -> Iterator[str]:
        """Of a port whose certificate is good, but has another name."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate_authority.issue_cert("other.example").configure_cert(context)
        with tls_before(valkey, context) as proxy:
            yield f"rediss://127.0.0.1:{proxy.port}"

    async def test_tls_with_a_context_works(
        self,
        url: str,
        prefix: str,
        client_tls: ssl.SSLContext,
        opened: Callable[..., Any],
    ) -> None:
        store = RedisStore(url, prefix=prefix, ssl_context=client_tls)
        entry = entry_of(body=b"x" * 400_000, retain_until=NOW + DAY)

        async with opened(store):
            await store.put(entry)
            found = await store.get(ORIGIN)

        assert found == entry

    async def test_certificate_of_an_unknown_authority_is_refused(
        self, url: str, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(url)

        async with opened(store):
            with pytest.raises(StoreError):
                await store.get(ORIGIN)

    async def test_certificate_of_another_name_is_refused(
        self, url_of_another: str, client_tls: ssl.SSLContext
    ) -> None:
        store = RedisStore(url_of_another, ssl_context=client_tls)

        with pytest.raises(StoreError):
            await store.get(ORIGIN)

    async def test_certificate_of_another_name_is_refused_without_a_context(
        self,
        url: str,
        url_of_another: str,
        certificate_authority: trustme.CA,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        """As far as the system's authorities go, anybody has a good certificate."""
        pem = tmp_path / "authorities.pem"
        certificate_authority.cert_pem.write_to_path(str(pem))
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))

        right = await RedisStore(url).get(ORIGIN)
        with pytest.raises(StoreError):
            await RedisStore(url_of_another).get(ORIGIN)

        assert right is None


class TestURLs:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "redis",
            "redis:",
            "redis://",
            "redis:///0",
            "rediss://",
            "unix://",
            "http://user:s3cret@host",
            "redis://user:s3cret@host:port",
            "redis://user:s3cret@host:99999",
            "redis://user:s3cret@[::1",
            "redis://user:s3cret/x@host",
            "redis://user:s3cret@host/robots",
            "redis://user:s3cret@host/0/1",
            "redis://user:s3cret@host/-1",
            "redis://:s3cret@",
            "user:s3cret@host:6379",
            "s3cret@host:6379",
        ],
    )
    async def test_wrong_url_raises_without_showing_the_password(
        self, url: str
    ) -> None:
        with pytest.raises(StoreError) as raised:
            RedisStore(url)

        lines = traceback.format_exception(raised.value)
        shown = [line for line in lines if not line.lstrip().startswith("File ")]
        assert "s3cret" not in "".join(shown)

    @pytest.mark.parametrize("url", [None, 6379, b"redis://host"])
    async def test_what_is_no_text_raises(self, url: Any) -> None:  # noqa: ANN401 (a mistake)
        with pytest.raises(StoreError):
            RedisStore(url)

    async def test_client_may_be_made_by_a_function(
        self, valkey: Valkey, prefix: str, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(lambda: Redis("127.0.0.1", valkey.port), prefix=prefix)
        entry = entry_of(retain_until=NOW + DAY)

        async with opened(store):
            await store.put(entry)
            found = await store.get(ORIGIN)

        assert found == entry

    async def test_server_may_be_at_a_unix_socket(
        self, opened: Callable[..., Any]
    ) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,  # short, as such paths must be
            running_valkey(unixsocket=f"{folder}/socket"),
        ):
            store = RedisStore(f"unix://{folder}/socket")
            async with opened(store):
                await store.put(entry_of(retain_until=NOW + DAY))
                found = await store.get(ORIGIN)

        assert found is not None


class TestLife:
    async def test_every_operation_works_in_both_ways(
        self, valkey: Valkey, prefix: str, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(valkey.url, prefix=prefix)
        entry = entry_about(ORIGIN)

        async with opened(store):
            before = await store.get(ORIGIN)
            is_ours = await store.acquire(ORIGIN, "one", 60.0)
            await store.put(entry)
            await store.release(ORIGIN, "one")
            found = await store.get(ORIGIN)
            is_ours_again = await store.acquire(ORIGIN, "one", 60.0)
            await store.delete(ORIGIN)
            after = await store.get(ORIGIN)

        assert (before, found, after) == (None, entry, None)
        assert is_ours
        assert is_ours_again

    async def test_kept_store_uses_few_connections(self, own_valkey: Valkey) -> None:
        async with RedisStore(own_valkey.url) as store:
            for operation in list(OPERATIONS.values()) * 20:
                await operation(store)

        # Those of the store, and of the one who asks.
        assert _connections(own_valkey) <= 1 + 1

    async def test_exception_inside_comes_out_as_it_was(
        self, valkey: Valkey, prefix: str
    ) -> None:
        error = ValueError("mine")

        async def fail_inside() -> None:
            async with RedisStore(valkey.url, prefix=prefix) as store:
                await store.get(ORIGIN)
                raise error

        with pytest.raises(ValueError, match="mine") as raised:
            await fail_inside()

        assert raised.value is error

    async def test_exception_comes_out_as_it_was_when_the_server_is_gone(
        self, own_valkey: Valkey
    ) -> None:
        async def fail_inside() -> None:
            async with RedisStore(own_valkey.url) as store:
                await store.get(ORIGIN)
                own_valkey.kill()
                with pytest.raises(StoreError):
                    await store.get(ORIGIN)
                raise KeyError

        with pytest.raises(KeyError):
            await fail_inside()

    async def test_cancellation_inside_ends_where_it_should(
        self, valkey: Valkey, prefix: str
    ) -> None:
        with anyio.CancelScope() as scope:
            async with RedisStore(valkey.url, prefix=prefix) as store:
                await store.get(ORIGIN)
                scope.cancel()
                await anyio.lowlevel.checkpoint()

        assert scope.cancelled_caught
        with pytest.raises(StoreError, match="closed"):
            await store.get(ORIGIN)

    async def test_closed_store_raises(
        self, valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(valkey.url)
        async with opened(store):
            await store.get(ORIGIN)
        await store.aclose()

        for operation in OPERATIONS.values():
            with pytest.raises(StoreError, match="closed"):
                await operation(store)


class TestFailures:
    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_server_that_is_down_raises_at_once(
        self, operation: str, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(f"redis://127.0.0.1:{dead_port()}")

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with opened(store):
                with pytest.raises(StoreError, match="Redis failed"):
                    await OPERATIONS[operation](store)

    @pytest.mark.parametrize(
        "octets",
        [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x46"],
        ids=["nothing", "HTTP", "TLS"],
    )
    async def test_server_that_is_another_raises(
        self,
        serve: Callable[..., LoopbackServer],
        octets: bytes,
        opened: Callable[..., Any],
    ) -> None:
        server = serve(Raw(octets), reads_requests=False)
        store = RedisStore(f"redis://127.0.0.1:{server.port}")

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with opened(store):
                with pytest.raises(StoreError):
                    await store.get(ORIGIN)

    async def test_store_comes_back_with_the_server(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(own_valkey.url)

        async with opened(store):
            await store.put(entry_about(ORIGIN))
            own_valkey.kill()
            for operation in OPERATIONS.values():
                with pytest.raises(StoreError):
                    await operation(store)
            own_valkey.start()
            await store.put(entry_about(_OTHER))
            found = [await store.get(ORIGIN), await store.get(_OTHER)]

        assert found == [None, entry_about(_OTHER)]

    @pytest.mark.parametrize("operation", WRITING)
    async def test_replica_raises_for_writing_until_it_is_the_primary(
        self, own_valkey: Valkey, operation: str, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(own_valkey.url)

        async with opened(store):
            await store.put(entry_about(ORIGIN))
            own_valkey.ask("REPLICAOF", "127.0.0.1", dead_port())
            with pytest.raises(StoreError):
                await OPERATIONS[operation](store)
            found = await store.get(ORIGIN)
            own_valkey.ask("REPLICAOF", "NO", "ONE")
            await OPERATIONS[operation](store)

        assert found == entry_about(ORIGIN)

    async def test_full_server_raises_for_writing_until_there_is_room(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        store = RedisStore(own_valkey.url)

        async with opened(store):
            await store.put(entry_about(_OTHER))
            await store.acquire(_OTHER, "one", 60.0)
            await store.get(_OTHER)
            _fill(own_valkey)
            for operation in ("put", "acquire"):
                with pytest.raises(StoreError):
                    await OPERATIONS[operation](store)
            with pytest.raises(StoreError):
                await store.put(entry_about(_OTHER))
            await store.release(_OTHER, "one")
            found = await store.get(_OTHER)
            own_valkey.ask("CONFIG", "SET", "maxmemory", "0")
            await store.put(entry_about(ORIGIN))
            is_free = await store.acquire(_OTHER, "other", 60.0)

        assert found == entry_about(_OTHER)
        assert is_free


class TestLeases:
    async def test_late_writer_changes_nothing_though_others_look(
        self, valkey: Valkey, prefix: str
    ) -> None:
        """Another checker of the same process waits for the lease and looks."""
        late, newer = entry_of(body=b"Disallow: /late"), entry_of(body=b"Disallow: /x")
        late = dataclasses.replace(late, retain_until=NOW + DAY)
        newer = dataclasses.replace(newer, retain_until=NOW + DAY)

        async with (
            RedisStore(valkey.url, prefix=prefix) as shared,
            RedisStore(valkey.url, prefix=prefix) as other,
        ):
            await shared.acquire(ORIGIN, "late", 60.0)
            valkey.ask("DEL", f"{prefix}lease:{ORIGIN}")  # its time is over
            await other.acquire(ORIGIN, "other", 60.0)
            await other.put_leased(newer, "other")
            await shared.get(ORIGIN)  # by another checker
            await shared.put_leased(late, "late")
            found = await other.get(ORIGIN)

        assert found == newer

    async def test_writer_that_never_had_a_lease_puts(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with (
            RedisStore(valkey.url, prefix=prefix) as one,
            RedisStore(valkey.url, prefix=prefix) as other,
        ):
            await one.acquire(ORIGIN, "one", 60.0)
            is_refused = not await other.acquire(ORIGIN, "other", 60.0)
            await other.put(entry_about(ORIGIN))
            found = await one.get(ORIGIN)

        assert is_refused
        assert found == entry_about(ORIGIN)


class TestCancellation:
    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_call_cancelled_anywhere_leaves_a_store_that_works(
        self, valkey: Valkey, prefix: str, operation: str, opened: Callable[..., Any]
    ) -> None:
        others = [f"http://{number}.example" for number in range(5)]
        found: list[Entry | None] = []
        number = 0
        is_cancelled = True

        store = RedisStore(valkey.url, prefix=prefix)
        async with opened(store):
            for origin in others:
                await store.put(entry_about(origin))
            while is_cancelled:
                number += 1
                await store.release(ORIGIN, "one")
                is_cancelled = await cancelled_at(
                    number, lambda: OPERATIONS[operation](store)
                )
                found += [await store.get(origin) for origin in others]
                assert await store.get(ORIGIN) in (None, entry_about(ORIGIN))

        assert number > 1
        assert found == [entry_about(origin) for origin in others] * number

    async def test_cancelled_calls_mix_up_no_replies(
        self, valkey: Valkey, prefix: str
    ) -> None:
        chance = Random(1)  # noqa: S311 (reproducible, no secret)
        origins = [f"http://{number}.example" for number in range(20)]
        expected = {origin: entry_about(origin) for origin in origins}
        wrong: list[Entry | None] = []
        count = 0

        async def look(origin: str) -> None:
            found = await store.get(origin)
            if found != expected[origin]:
                wrong.append(found)

        async def be_cancelled(origin: str) -> None:
            nonlocal count
            with anyio.CancelScope() as scope:
                scopes.append(scope)
                await look(origin)
            count += scope.cancelled_caught

        async with RedisStore(valkey.url, prefix=prefix) as store:
            for entry in expected.values():
                await store.put(entry)
            while count < 300:
                scopes: list[anyio.CancelScope] = []
                async with anyio.create_task_group() as tasks:
                    for origin in chance.sample(origins, 10):
                        tasks.start_soon(be_cancelled, origin)
                        tasks.start_soon(look, chance.choice(origins))
                    for _ in range(chance.randrange(1, 8)):
                        await anyio.lowlevel.checkpoint()
                    for scope in chance.sample(scopes, min(5, len(scopes))):
                        scope.cancel()
            for origin in origins:
                await look(origin)

        assert wrong == []

    async def test_calls_cancelled_while_they_connect_use_up_no_connections(
        self, own_valkey: Valkey
    ) -> None:
        """A server that hangs for a while: each call in it ends with a time-out."""
        async with RedisStore(own_valkey.url) as store:

            async def be_late() -> None:
                with anyio.move_on_after(0.05):
                    await store.get(ORIGIN)

            own_valkey.pause()
            for _ in range(2):
                async with anyio.create_task_group() as tasks:
                    for _ in range(100):
                        tasks.start_soon(be_late)
            own_valkey.resume()
            with anyio.fail_after(_PATIENCE_SECONDS):
                await store.put(entry_about(ORIGIN))
                found = await store.get(ORIGIN)

        assert found == entry_about(ORIGIN)

    async def test_cancelled_first_calls_use_up_no_connections(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            for number in range(200):
                await cancelled_at(1 + number % 2, lambda: store.get(ORIGIN))
            with anyio.fail_after(_PATIENCE_SECONDS):
                await store.put(entry_about(ORIGIN))
                found = await store.get(ORIGIN)

        assert found == entry_about(ORIGIN)


# --- checkers ----------------------------------------------------------------------


SITES = {f"http://{number}.example": number % 2 == 0 for number in range(8)}
"""Whether the whole of a site is allowed."""


def _many_sites() -> FakeSite:
    site = site_of()
    for origin, is_allowed in SITES.items():
        site.serve(origin, "User-agent: *\n" + ("" if is_allowed else "Disallow: /\n"))
    return site


async def _is_right(checker: RobotsChecker, *numbers: int) -> bool:
    """Whether `checker` answers rightly for the sites of these numbers."""
    origins = [list(SITES)[number] for number in numbers]
    answers = [await checker.can_fetch(AGENT, f"{origin}/x") for origin in origins]
    return answers == [SITES[origin] for origin in origins]


def _fill(server: Valkey) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.ask("CONFIG", "SET", "maxmemory", "1")


def _connections(server: Valkey) -> int:
    """How many connections there have been, this one included."""
    lines = str(server.ask("INFO", "stats")).splitlines()
    found = dict(line.split(":") for line in lines if ":" in line)
    return int(found["total_connections_received"])


class TestCheckerOnBadServer:
    async def test_server_that_is_down_from_the_start_is_done_without(self) -> None:
        site = _many_sites()
        url = f"redis://127.0.0.1:{dead_port()}"

        async with checker_of(site, store=url) as checker:
            is_right = await _is_right(checker, *range(8), *range(8))

        assert is_right
        assert len(site.requests) == 8
        assert checker.stats.store_failures > 0

    async def test_checker_comes_back_to_a_server_that_is_restarted(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        site = _many_sites()
        store = RedisStore(own_valkey.url)

        async with opened(store), checker_of(site, store=store) as checker:
            before = await _is_right(checker, 0, 1)
            failures_before = checker.stats.store_failures
            own_valkey.stop()
            meanwhile = await _is_right(checker, 0, 1, 2, 3)
            failures_meanwhile = checker.stats.store_failures
            own_valkey.start()
            after = await _is_right(checker, 0, 1, 2, 3, 4, 5)
            failures_after = checker.stats.store_failures

        keys = own_valkey.ask("KEYS", "*")
        assert isinstance(keys, list)
        assert before
        assert meanwhile
        assert after
        assert len(site.requests) == 6
        assert failures_before == 0
        assert failures_meanwhile == failures_after > 0
        assert sorted(keys) == [f"robotsgate:http://{n}.example" for n in (4, 5)]

    async def test_checker_leaves_a_hanging_server_alone_and_comes_back(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        site, clock = _many_sites(), ManualClock()
        store = RedisStore(own_valkey.url)
        policy = Policy(store_timeout=0.5)

        async with (
            opened(store),
            checker_of(site, store=store, policy=policy, clock=clock) as checker,
        ):
            before = await _is_right(checker, 0, 1)
            own_valkey.pause()
            meanwhile = await _is_right(checker, 0, 1, 2, 3)
            hung = checker.stats
            own_valkey.resume()
            clock.advance(31)
            after = await _is_right(checker, 4, 5)
            ended = checker.stats

        keys = own_valkey.ask("KEYS", "robotsgate:http*")
        assert isinstance(keys, list)
        assert before
        assert meanwhile
        assert after
        assert hung.store_failures == 1
        assert hung.store_skips > 0
        assert (ended.store_failures, ended.store_skips) == (1, hung.store_skips)
        assert {f"robotsgate:http://{n}.example" for n in (4, 5)} <= set(keys)

    async def test_server_that_says_nothing_costs_one_time_out_in_a_pause(
        self, serve: Callable[..., LoopbackServer], opened: Callable[..., Any]
    ) -> None:
        silent = serve(lambda _, connection: connection.hang(), reads_requests=False)
        site, clock = _many_sites(), ManualClock()
        store = RedisStore(f"redis://127.0.0.1:{silent.port}")
        policy = Policy(store_timeout=0.1)

        async with (
            opened(store),
            checker_of(site, store=store, policy=policy, clock=clock) as checker,
        ):
            first = await _is_right(checker, *range(4))
            clock.advance(31)
            second = await _is_right(checker, *range(8))

        assert first
        assert second
        assert len(site.requests) == 8
        assert checker.stats.store_failures == 2
        assert checker.stats.store_skips > 0

    async def test_checker_comes_back_after_many_questions_at_once_have_hung(
        self, own_valkey: Valkey
    ) -> None:
        site, clock = site_of(), ManualClock()
        policy = Policy(store_timeout=0.1)

        async with (
            RedisStore(own_valkey.url) as store,
            checker_of(site, store=store, policy=policy, clock=clock) as checker,
        ):
            own_valkey.pause()
            for number in range(3):
                urls = [f"http://{n}.{number}.example/" for n in range(100)]
                answers = await checker.can_fetch_many(AGENT, urls)
                assert answers == [True] * 100
                clock.advance(31)
            own_valkey.resume()
            key, number = "", 0
            with anyio.fail_after(_PATIENCE_SECONDS):
                # It may take a moment to work off what it was asked meanwhile.
                while not key or not own_valkey.ask("EXISTS", key):
                    number += 1
                    clock.advance(31)
                    await checker.can_fetch(AGENT, f"http://new{number}.example/")
                    key = f"robotsgate:http://new{number}.example"

        assert own_valkey.ask("EXISTS", key) == 1

    @pytest.mark.parametrize("fault", ["read-only", "full"])
    async def test_checker_answers_rightly_when_it_cannot_write(
        self, own_valkey: Valkey, fault: str, opened: Callable[..., Any]
    ) -> None:
        site = _many_sites()
        store = RedisStore(own_valkey.url)
        async with checker_of(site, store=own_valkey.url) as other:
            await _is_right(other, 6, 7)

        async with opened(store), checker_of(site, store=store) as checker:
            before = await _is_right(checker, 0, 1)
            if fault == "full":
                _fill(own_valkey)
            else:
                own_valkey.ask("REPLICAOF", "127.0.0.1", dead_port())
            meanwhile = await _is_right(checker, 0, 1, 2, 3, 6, 7)
            failures = checker.stats.store_failures
            own_valkey.ask("CONFIG", "SET", "maxmemory", "0")
            own_valkey.ask("REPLICAOF", "NO", "ONE")
            after = await _is_right(checker, 0, 1, 2, 3, 4, 5, 6, 7)

        assert before
        assert meanwhile
        assert after
        assert len(site.requests) == 8
        assert checker.stats.store_failures == failures > 0
        assert own_valkey.ask("EXISTS", "robotsgate:http://4.example") == 1

    async def test_checker_forgets_and_refreshes_without_a_server(self) -> None:
        site = site_of()

        async with checker_of(
            site, store=f"redis://127.0.0.1:{dead_port()}"
        ) as checker:
            await checker.refresh(PUBLIC)
            site.serve(ORIGIN, "User-agent: *\nDisallow: /\n")
            await checker.forget(PUBLIC)
            answer = await checker.can_fetch(AGENT, PUBLIC)

        assert not answer
        assert len(site.requests) == 2


@asynccontextmanager
async def _workers(
    server: Valkey, prefix: str, *checkers: dict[str, Any]
) -> AsyncIterator[list[RobotsChecker]]:
    """Checkers with these arguments, each with a store of its own, on one server.

    In real time, as the leases of the server end.
    """
    async with AsyncExitStack() as stack:
        made = []
        for arguments in checkers:
            store = RedisStore(server.url, prefix=prefix)
            await stack.enter_async_context(store)
            checker = checker_of(
                **{"store": store, "clock": SystemClock(), **arguments}
            )
            made.append(await stack.enter_async_context(checker))
        yield made


async def _until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(_PATIENCE_SECONDS):
        while not is_so():
            await anyio.lowlevel.checkpoint()


def _gated_site(body: str, *, status: int = 200) -> GatedSite:
    site = GatedSite()
    site.serve(ORIGIN, body, status=status)
    return site


RULES = "User-agent: *\nDisallow: /private\n"


class TestWorkers:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [(200, [True, False]), (404, [True, True]), (503, [False, False])],
    )
    @pytest.mark.parametrize("ahead", [0.0, -180.0, 180.0])
    async def test_workers_asked_at_once_make_one_request(
        self,
        valkey: Valkey,
        prefix: str,
        *,
        status: int,
        expected: list[bool],
        ahead: float,
    ) -> None:
        # A failure is asked about again after half a minute of anybody's clock.
        policy = Policy(retry_initial=HOUR, retry_initial_503=HOUR, retry_max=HOUR)
        site = _gated_site(RULES, status=status)
        clocks = ManualClock(), ManualClock(NOW + ahead)
        answers: dict[int, list[bool]] = {}

        async with _workers(
            valkey,
            prefix,
            *({"site": site, "clock": c, "policy": policy} for c in clocks),
        ) as workers:

            async def ask(number: int) -> None:
                urls = [PUBLIC, PRIVATE]
                answers[number] = await workers[number].can_fetch_many(AGENT, urls)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 0)
                await _until(lambda: site.under_way == 1)
                tasks.start_soon(ask, 1)
                await _until(lambda: workers[1].stats.lease_waits > 0)
                site.gate.set()
                await _until(lambda: 0 in answers)
                await clocks[1].pass_time(1)

        assert len(site.requests) == 1
        assert answers == {0: expected, 1: expected}
        assert [worker.stats.fetches for worker in workers] == [1, 0]
        assert valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}") == 0

    @pytest.mark.parametrize("ahead", [-180.0, 180.0])
    async def test_worker_whose_clock_is_minutes_off_uses_the_entry(
        self, valkey: Valkey, prefix: str, ahead: float
    ) -> None:
        site = site_of()
        clocks = ManualClock(), ManualClock(NOW + ahead)

        async with _workers(
            valkey, prefix, *({"site": site, "clock": clock} for clock in clocks)
        ) as workers:
            answers = [await worker.can_fetch(AGENT, PRIVATE) for worker in workers]

        assert answers == [False, False]
        assert len(site.requests) == 1

    @pytest.mark.parametrize("ahead", [-180.0, 180.0, -2 * DAY, 2 * DAY, -HOUR])
    async def test_worker_never_keeps_to_old_rules_for_longer_than_their_lifetime(
        self, valkey: Valkey, prefix: str, ahead: float
    ) -> None:
        site = site_of()
        clocks = ManualClock(), ManualClock(NOW + ahead)
        arguments = [{"site": site, "clock": clock} for clock in clocks]

        async with _workers(valkey, prefix, *arguments) as workers:
            for worker in workers:
                await worker.can_fetch(AGENT, PUBLIC)
            site.serve(ORIGIN, "User-agent: *\nDisallow: /\n")
            for clock in clocks:
                clock.advance(DAY + 181)  # the lifetime, and the skew
            answers = [await worker.can_fetch(AGENT, PUBLIC) for worker in workers]

        assert answers == [False, False]
        assert len(site.requests) <= 4

    @pytest.mark.parametrize("ahead", [-2 * DAY, 2 * DAY])
    async def test_worker_whose_clock_is_days_off_asks_by_itself_and_is_right(
        self, valkey: Valkey, prefix: str, ahead: float
    ) -> None:
        site = site_of()
        clocks = ManualClock(), ManualClock(NOW + ahead)
        arguments = [{"site": site, "clock": clock} for clock in clocks]
        answers = []

        async with _workers(valkey, prefix, *arguments) as workers:
            for worker in workers * 3:
                answers.append(await worker.can_fetch(AGENT, PRIVATE))
                answers.append(not await worker.can_fetch(AGENT, PUBLIC))

        assert not any(answers)
        assert len(site.requests) == 2

    async def test_worker_takes_over_when_the_owner_has_died(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = site_of()
        dead = RedisStore(valkey.url, prefix=prefix)
        await dead.acquire(ORIGIN, "dead", 0.2)

        async with _workers(valkey, prefix, {"site": site}) as [worker]:
            with anyio.fail_after(_PATIENCE_SECONDS):
                answer = await worker.can_fetch(AGENT, PRIVATE)

        assert not answer
        assert len(site.requests) == 1
        assert worker.stats.lease_waits > 0  # it has waited

    async def test_lease_lasts_for_a_fetch_and_the_store_around_it(
        self, valkey: Valkey, prefix: str
    ) -> None:
        policy = Policy(fetch_deadline=100.0, store_timeout=10.0)
        site = _gated_site(RULES)

        async with (
            _workers(valkey, prefix, {"site": site, "policy": policy}) as [worker],
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(worker.can_fetch, AGENT, PUBLIC)
            await _until(lambda: site.under_way == 1)
            left = valkey.ask("PTTL", f"{prefix}lease:{ORIGIN}")
            site.gate.set()

        assert isinstance(left, int)
        assert 110_000 < left <= 130_000

    async def test_owner_that_is_cancelled_gives_way_at_once(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site, other = _gated_site(RULES), site_of()

        async with _workers(valkey, prefix, {"site": site}, {"site": other}) as workers:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(workers[0].can_fetch, AGENT, PUBLIC)
                await _until(lambda: site.under_way == 1)
                held = valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}")
                tasks.cancel_scope.cancel()
            left = valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}")
            answer = await workers[1].can_fetch(AGENT, PRIVATE)

        assert (held, left) == (1, 0)
        assert not answer
        assert len(other.requests) == 1

    async def test_checker_that_is_closed_gives_way_at_once(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)
        errors = []

        async def ask(worker: RobotsChecker) -> None:
            try:
                await worker.can_fetch(AGENT, PUBLIC)
            except RuntimeError as error:
                errors.append(error)

        async with (
            _workers(valkey, prefix, {"site": site}) as [worker],
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(ask, worker)
            await _until(lambda: site.under_way == 1)
            await worker.aclose()

        assert len(errors) == 1
        assert valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}") == 0

    async def test_worker_cancelled_anywhere_leaves_no_lease(
        self, valkey: Valkey, prefix: str
    ) -> None:
        leases = []
        is_cancelled, number = True, 0

        async with RedisStore(valkey.url, prefix=prefix) as store:
            while is_cancelled:
                number += 1
                site = site_of()
                await store.delete(ORIGIN)
                async with checker_of(site, store=store) as worker:
                    is_cancelled = await cancelled_at(
                        number, lambda: worker.can_fetch(AGENT, PUBLIC)
                    )
                if valkey.ask("DEL", f"{prefix}lease:{ORIGIN}"):
                    leases.append(number)

        assert number > 5
        assert leases == []

    async def test_refresh_asks_although_the_fleet_knows(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = site_of()

        async with _workers(valkey, prefix, {"site": site}, {"site": site}) as workers:
            await workers[0].can_fetch(AGENT, PUBLIC)
            site.serve(ORIGIN, "User-agent: *\nDisallow: /\n")
            await workers[1].refresh(PUBLIC)
            refreshed = await workers[1].can_fetch(AGENT, PUBLIC)
            not_yet = await workers[0].can_fetch(AGENT, PUBLIC)

        assert (refreshed, not_yet) == (False, True)
        assert len(site.requests) == 2

    async def test_refresh_waits_for_the_fetch_of_another_and_asks_itself(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)

        async with (
            _workers(valkey, prefix, {"site": site}, {"site": site}) as workers,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(workers[0].can_fetch, AGENT, PUBLIC)
            await _until(lambda: site.under_way == 1)
            tasks.start_soon(workers[1].refresh, PUBLIC)
            await _until(lambda: workers[1].stats.lease_waits > 0)
            site.gate.set()

        assert site.most_under_way == 1
        assert [worker.stats.fetches for worker in workers] == [1, 1]

    async def test_many_workers_asked_about_many_origins_make_one_request_each(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _many_sites()
        urls = [f"{origin}/x" for origin in SITES]
        answers = []

        async def ask(worker: RobotsChecker) -> None:
            answers.append(await worker.can_fetch_many(AGENT, urls))

        async with (
            _workers(valkey, prefix, *[{"site": site}] * 8) as workers,
            anyio.create_task_group() as tasks,
        ):
            for worker in workers:
                tasks.start_soon(ask, worker)

        assert answers == [list(SITES.values())] * 8
        assert sorted(site.requests) == [f"{origin}/robots.txt" for origin in SITES]

    async def test_two_checkers_of_one_store_make_one_request(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)
        answers = []

        async def ask(worker: RobotsChecker) -> None:
            answers.append(await worker.can_fetch(AGENT, PRIVATE))

        async with (
            RedisStore(valkey.url, prefix=prefix) as store,
            _workers(valkey, prefix, *[{"site": site, "store": store}] * 2) as workers,
            anyio.create_task_group() as tasks,
        ):
            for worker in workers:
                tasks.start_soon(ask, worker)
            await _until(lambda: site.under_way == 1)
            await _until(lambda: any(w.stats.lease_waits > 0 for w in workers))
            site.gate.set()

        assert answers == [False, False]
        assert len(site.requests) == 1


class TestClosing:
    async def test_call_under_way_when_the_context_ends_raises(self) -> None:
        """A server that accepts and says nothing."""
        with LoopbackServer(Raw(b"", Connection.hang), reads_requests=False) as silent:
            store = RedisStore(f"redis://127.0.0.1:{silent.port}")

            async def get() -> None:
                with pytest.raises(StoreError, match="closed"):
                    await store.get(ORIGIN)

            with anyio.fail_after(_PATIENCE_SECONDS):
                async with anyio.create_task_group() as tasks, store:
                    tasks.start_soon(get)
                    await anyio.wait_all_tasks_blocked()

    async def test_entry_that_cannot_be_stored_raises(
        self, valkey: Valkey, prefix: str
    ) -> None:
        entry = dataclasses.replace(entry_of(), failures=-1)

        with pytest.raises(StoreError, match="in range"):
            await RedisStore(valkey.url, prefix=prefix).put(entry)

    async def test_call_to_a_client_that_never_gives_up_ends_all_the_same(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_lasting_client, "CALL_SECONDS", 0.1)
        with LoopbackServer(Raw(b"", Connection.hang), reads_requests=False) as silent:
            with anyio.fail_after(_PATIENCE_SECONDS):
                async with RedisStore(lambda: Redis("127.0.0.1", silent.port)) as store:
                    with pytest.raises(StoreError, match="TimeoutError"):
                        await store.get(ORIGIN)
