"""The Redis store on a real Valkey server."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
import redis
from redis.asyncio import Redis

from robotsgate import RobotsChecker, StoreError, UnsupportedError, open_store
from robotsgate._clock import SystemClock
from robotsgate.stores import HOST_PREFIX, TimedStore
from robotsgate.stores.redis import CALL_SECONDS, RedisStore
from tests.cancellation import WAYS, cancelled_at, suspensions
from tests.servers.loopback import dead_port
from tests.servers.valkey import Valkey, running_valkey, tls_before
from tests.stores.contracts import (
    KEY,
    LATER,
    LeaseContract,
    StoreContract,
    keys_of,
    to,
)
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import trustme

    from robotsgate import Store
    from tests.servers.loopback import Connection, LoopbackServer, Request

pytestmark = pytest.mark.anyio

# Far longer than anything here takes.
_TIMEOUT_SECONDS = 10.0

OPERATIONS: dict[str, Callable[[RedisStore], Awaitable[object]]] = {
    "get": lambda store: store.get(KEY),
    "update": lambda store: store.update(KEY, to(b"new", LATER)),
    "update_timed": lambda store: store.update_timed(
        KEY, lambda _kept, _now: (b"new", LATER)
    ),
    "delete": lambda store: store.delete(KEY),
    "acquire": lambda store: store.acquire(KEY, "one", 60.0),
    "release": lambda store: store.release(KEY, "one"),
    "count": lambda store: store.count(),
}


@pytest.fixture
def anyio_backend() -> str:
    """redis-py runs on asyncio only."""
    return "asyncio"


@pytest.fixture
def set_timeout(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the timeout for calls that start from now on, in seconds."""
    return lambda seconds: monkeypatch.setattr(
        "robotsgate.stores.redis.CALL_SECONDS", seconds
    )


def open_connections(server: Valkey) -> int:
    """How many connections are open, except the one used to find out."""
    return len(str(server.ask("CLIENT", "LIST")).strip().splitlines()) - 1


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(_TIMEOUT_SECONDS):
        while not condition():
            await anyio.lowlevel.checkpoint()


class TestRedisStore(StoreContract):
    keeps_what_is_useless = False

    @pytest.fixture
    def make_store(self, valkey: Valkey, prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(valkey.url, prefix=prefix)

    @pytest.fixture
    def make_shared(self, make_store: Callable[[], Store]) -> Callable[[], Store]:
        return make_store


class TestRedisLease(LeaseContract):
    @pytest.fixture
    def make_lease(self, valkey: Valkey, prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(valkey.url, prefix=prefix)


class TestUpdate:
    async def test_change_is_called_again_if_another_writer_is_faster(
        self, valkey: Valkey, prefix: str
    ) -> None:
        seen: list[bytes | None] = []
        others = [b"", b"other", bytes(600_000)]

        def change(kept: bytes | None) -> tuple[bytes, None]:
            seen.append(kept)
            if others:
                valkey.ask("SET", prefix + KEY, others.pop(0))
            return b"ours", None

        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update(KEY, change)
            value = await store.get(KEY)

        assert seen == [None, b"", b"other", bytes(600_000)]
        assert value == b"ours"

    async def test_update_that_loses_every_race_raises_when_its_time_is_over(
        self, valkey: Valkey, prefix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It used to fail after ten lost races."""
        calls = 0

        def pause(*_: float) -> float:
            return 0.0 if calls <= 30 else 2 * CALL_SECONDS

        def change(_: bytes | None) -> tuple[bytes, None]:
            nonlocal calls
            calls += 1
            valkey.ask("APPEND", prefix + KEY, "x")
            return b"ours", None

        monkeypatch.setattr(random, "uniform", pause)
        async with RedisStore(valkey.url, prefix=prefix) as store:
            with pytest.raises(StoreError, match=r"other writers changed .* first"):
                await store.update(KEY, change)
            value = await store.get(KEY)

        assert (calls, value) == (31, b"x" * 31)


class TestUpdateTimed:
    async def test_change_gets_the_time_at_which_the_server_read(
        self, valkey: Valkey, prefix: str
    ) -> None:
        times: list[float] = []
        seen: list[bytes | None] = []

        def change(kept: bytes | None, now: float) -> tuple[bytes, None]:
            times.append(now)
            seen.append(kept)
            return b"new", None

        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update_timed(KEY, change)  # the server learns the scripts
            with valkey.monitored() as lines:
                await store.update_timed(KEY, change)

        # MONITOR shows when the server began each command.
        calls = [line for line in lines if prefix in line and " lua]" not in line]
        read, written = (float(line.split()[0].removeprefix("+")) for line in calls)
        assert isinstance(store, TimedStore)
        assert read - 0.01 <= times[1] <= written
        assert seen == [None, b"new"]

    async def test_clock_of_this_process_replaces_that_of_a_server_that_refuses(
        self, own_valkey: Valkey
    ) -> None:
        own_valkey.ask(
            *("ACL", "SETUSER", "crawler", "on", ">secret", "~*", "+@all", "-time")
        )
        times: list[float] = []

        def change(_: bytes | None, now: float) -> tuple[bytes, None]:
            times.append(now)
            return b"new", None

        before = SystemClock.now()
        url = own_valkey.url.replace("//", "//crawler:secret@")
        async with RedisStore(url) as store:
            await store.update_timed(KEY, change)

        assert before <= times[0] <= SystemClock.now()


class TestLease:
    async def test_fetch_under_a_lease_takes_four_round_trips(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update("other", to(b""))  # the server learns the script
            with valkey.monitored() as seen:
                assert await store.get(KEY) is None
                assert await store.acquire(KEY, "one", 60.0)
                assert await store.get(KEY) is None
                await store.update(KEY, to(b"new"))
                await store.release(KEY, "one")
            is_free = await store.acquire(KEY, "other", 60.0)

        calls = [line for line in seen if prefix in line and " lua]" not in line]
        assert [line.split('"')[1].upper() for line in calls] == [
            *("GET", "SET", "GET", "EVALSHA"),
        ]
        assert is_free
        assert valkey.ask("GET", prefix + KEY) == "new"

    async def test_value_read_under_a_lease_is_read_again_if_another_process_wrote(
        self, valkey: Valkey, prefix: str
    ) -> None:
        seen: list[bytes | None] = []

        def change(kept: bytes | None) -> tuple[bytes, None]:
            seen.append(kept)
            return (kept or b"") + b" and ours", None

        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.acquire(KEY, "one", 60.0)
            await store.get(KEY)
            valkey.ask("SET", prefix + KEY, "theirs")
            await store.update(KEY, change)
            await store.update(KEY, change)

        assert seen == [None, b"theirs", b"theirs and ours"]

    async def test_update_and_release_keep_the_lease_of_another_owner(
        self, valkey: Valkey, prefix: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.acquire(KEY, "one", 60.0)
            valkey.ask("SET", f"{prefix}lease:{KEY}", "other")
            await store.update(KEY, to(b"new"))
            await store.release(KEY, "one")

        assert valkey.ask("GET", f"{prefix}lease:{KEY}") == "other"


class TestExpiry:
    @cases("keep_until expected", {
        "finite": (LATER + 0.0005, LATER * 1_000 + 1),
        "infinite": (float("inf"), 253_402_300_799_000),
        "too far in the future": (1e300, 253_402_300_799_000),
        "unknown": (None, -1),
        "past": (1.8, -2),
        "too far in the past": (-1e300, -2),
    })  # fmt: skip
    async def test_key_expires_at_keep_until(
        self, valkey: Valkey, prefix: str, keep_until: float | None, expected: float
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update(KEY, to(b"", LATER - 1))
            await store.update(KEY, to(b"", keep_until))

        # -1: it never expires; -2: it has expired already.
        assert valkey.ask("PEXPIRETIME", prefix + KEY) == expected


class TestKeys:
    async def test_keys_start_with_the_prefix_and_only_entries_are_listed(
        self, own_valkey: Valkey
    ) -> None:
        async with (
            RedisStore(own_valkey.url) as store,
            RedisStore(own_valkey.url, prefix="robots*[a]\\") as other,
        ):
            await store.update("a", to(b""))
            await store.update(f"{HOST_PREFIX}d", to(b""))
            await store.acquire("b", "one", 60.0)
            await other.update("c", to(b""))
            listed = await keys_of(store), await keys_of(other)

        keys = own_valkey.ask("KEYS", "*")
        assert isinstance(keys, list)
        assert set(keys) == {
            *("robotsgate:a", "robotsgate:turn:d", "robotsgate:lease:b"),
            "robots*[a]\\c",
        }
        assert listed == (["a"], ["c"])

    async def test_each_of_many_keys_is_listed_once(
        self, valkey: Valkey, prefix: str
    ) -> None:
        names = [f"{number:05}" for number in range(3_000)]
        valkey.ask("MSET", *(word for name in names for word in (prefix + name, "")))

        async with RedisStore(valkey.url, prefix=prefix) as store:
            assert await keys_of(store) == names
            assert await store.count() == 3_000

    async def test_value_of_another_type_is_replaced_only_if_it_is_still_there(
        self, valkey: Valkey, prefix: str
    ) -> None:
        seen: list[bytes | None] = []
        others = [["SET", "theirs"], ["RPUSH", "a"]]

        def change(kept: bytes | None) -> tuple[bytes, None]:
            seen.append(kept)
            if others:
                command, *words = others.pop(0)
                valkey.ask("DEL", prefix + KEY)
                valkey.ask(command, prefix + KEY, *words)
            return b"ours", None

        valkey.ask("RPUSH", prefix + KEY, "a")
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update(KEY, change)

        assert seen == [b"", b"theirs", b""]
        assert valkey.ask("GET", prefix + KEY) == "ours"


class TestAuthentication:
    @pytest.fixture
    def guarded(self) -> Iterator[Valkey]:
        """A server with a password."""
        with running_valkey(requirepass="s3cret") as server:
            yield server

    @pytest.mark.parametrize("login", ["", "wr0ng:wr0ng@", ":wr0ng@"])
    async def test_wrong_password_raises_without_showing_it(
        self, guarded: Valkey, login: str
    ) -> None:
        async with RedisStore(guarded.url.replace("//", f"//{login}")) as store:
            with pytest.raises(StoreError) as raised:
                await store.get(KEY)

        assert "wr0ng" not in "".join(traceback.format_exception(raised.value))

    async def test_user_needs_only_a_few_permissions_for_the_prefix(
        self, own_valkey: Valkey
    ) -> None:
        own_valkey.ask(
            *("ACL", "SETUSER", "crawler", "on", ">secret", "~robotsgate:*", "-@all"),
            *("+get", "+set", "+pexpireat", "+del", "+eval", "+evalsha", "+scan"),
        )
        url = own_valkey.url.replace("//", "//crawler:secret@")

        async with RedisStore(url) as store:
            for operation in OPERATIONS.values():
                await operation(store)
        async with RedisStore(url, prefix="another:") as store:
            with pytest.raises(StoreError):
                await store.get(KEY)


async def test_certificate_for_another_name_is_refused(
    valkey: Valkey,
    server_tls: ssl.SSLContext,
    certificate_authority: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody can get a certificate from one of the system's authorities."""
    for_another = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate_authority.issue_cert("other.example").configure_cert(for_another)
    with (
        certificate_authority.cert_pem.tempfile() as authorities,
        tls_before(valkey, server_tls) as ours,
        tls_before(valkey, for_another) as another,
    ):
        monkeypatch.setenv("SSL_CERT_FILE", authorities)
        async with RedisStore(f"rediss://127.0.0.1:{ours.port}") as store:
            assert await store.get(KEY) is None
        for options in ("", f"?ssl_ca_certs={authorities}"):
            url = f"rediss://127.0.0.1:{another.port}{options}"
            async with RedisStore(url) as store:
                with pytest.raises(StoreError):
                    await store.get(KEY)


class TestURLs:
    @pytest.mark.parametrize("url", [
        "", "redis:", "redis://", "redis:///0", "rediss://", "unix://",
        "http://user:s3cret@host", "redis://user:s3cret@host:port",
        "redis://user:s3cret@host:99999", "redis://user:s3cret@[::1",
        "redis://user:s3cret/x@host", "redis://user:s3cret@host/robots",
        "redis://user:s3cret@host/0/1", "redis://user:s3cret@host/-1",
        "redis://:s3cret@", "user:s3cret@host:6379", None, b"redis://host",
        "redis://user:s3cret@host?decode_responses=1",
        "redis://user:s3cret@host?db=x", "redis://user:s3cret@host?s3cret=1",
    ])  # fmt: skip
    def test_invalid_url_raises_without_showing_the_password(self, url: Any) -> None:  # noqa: ANN401 (a mistake)
        with pytest.raises(StoreError) as raised:
            RedisStore(url)

        lines = traceback.format_exception(raised.value)
        shown = [line for line in lines if not line.lstrip().startswith("File ")]
        assert "s3cret" not in "".join(shown)

    async def test_client_of_the_caller_stays_open(self, own_valkey: Valkey) -> None:
        async with Redis(host="127.0.0.1", port=own_valkey.port) as client:
            for value in (b"1", b"2"):
                async with RedisStore(client=client) as store:
                    await store.update(KEY, to(value))
            value = await client.get(f"robotsgate:{KEY}")
            connections = open_connections(own_valkey)

        assert value == b"2"
        assert connections == 1

    @cases("url client error", {
        "none": (None, None, "either the URL of a Redis server or a client"),
        "a URL as well": ("redis://host", Redis(), "expected either the URL"),
        "a blocking one": (None, redis.Redis(), "client of redis.asyncio, got a <cl"),
        "one that decodes": (None, Redis(decode_responses=True), "does not decode"),
        "a URL": (None, "redis://host", "client of redis.asyncio"),
    })  # fmt: skip
    def test_unusable_client_raises(
        self,
        url: str | None,
        client: Any,  # noqa: ANN401 (a mistake)
        error: str,
    ) -> None:
        with pytest.raises(StoreError, match=error):
            RedisStore(url, client=client)

    async def test_function_that_creates_an_unusable_client_fails(self) -> None:
        async with RedisStore(client=lambda: Redis(decode_responses=True)) as store:
            with pytest.raises(StoreError, match="does not decode"):
                await store.get(KEY)

    async def test_function_creates_a_client_that_the_store_closes(
        self, own_valkey: Valkey
    ) -> None:
        async with RedisStore(
            client=lambda: Redis(host="127.0.0.1", port=own_valkey.port)
        ) as store:
            await store.update(KEY, to(b"1"))
            value = await store.get(KEY)

        assert value == b"1"
        await _until(lambda: open_connections(own_valkey) == 0)


class TestEventLoops:
    @pytest.mark.parametrize("anyio_backend", ["trio"])
    @pytest.mark.parametrize("operation", ["async with", *OPERATIONS])
    async def test_trio_is_unsupported(self, operation: str) -> None:
        store = RedisStore("redis://127.0.0.1")
        call = OPERATIONS.get(operation, RedisStore.__aenter__)

        async with aclosing(store):
            with pytest.raises(UnsupportedError, match="SQLiteStore or a URL such as"):
                await call(store)

    @pytest.mark.parametrize("anyio_backend", ["trio"])
    async def test_checker_on_trio_raises_instead_of_working_without_the_store(
        self,
    ) -> None:
        checker = RobotsChecker(user_agent="Bot", store=RedisStore("redis://host"))

        async with checker:
            with pytest.raises(UnsupportedError):
                await checker.can_fetch("Bot", "http://example.com/")

    def test_store_belongs_to_its_first_event_loop(self, own_valkey: Valkey) -> None:
        store = RedisStore(own_valkey.url)

        async def get() -> None:
            await store.get(KEY)

        async def close() -> None:
            with pytest.raises(StoreError, match="each event loop to have its own"):
                await store.get(KEY)

        with asyncio.Runner() as one:
            one.run(get())
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, close()).result(_TIMEOUT_SECONDS)
            one.run(store.aclose())


class TestLifecycle:
    async def test_entered_store_uses_a_single_connection(
        self, own_valkey: Valkey
    ) -> None:
        async with RedisStore(own_valkey.url) as store:
            for operation in list(OPERATIONS.values()) * 20:
                await operation(store)

        lines = str(own_valkey.ask("INFO", "stats")).splitlines()
        stats = dict(line.split(":") for line in lines if ":" in line)
        # The store's, and the one used to ask.
        assert int(stats["total_connections_received"]) <= 1 + 1

    @cases("url error", {
        "a server that is not there": (
            f"redis://u:s3cret@127.0.0.1:{dead_port()}", r"127\.0\.0\.1"),
        "a name that does not resolve": ("redis://typo.invalid", r"typo\.invalid"),
    })  # fmt: skip
    async def test_required_server_that_cannot_be_reached_raises_at_once(
        self, url: str, error: str
    ) -> None:
        store = open_store(url, required=True)
        assert isinstance(store, RedisStore)

        with pytest.raises(StoreError, match=error) as raised:
            await store.__aenter__()

        assert "s3cret" not in str(raised.value)
        with pytest.raises(StoreError, match="closed"):
            await store.get(KEY)

    async def test_required_server_is_used_at_once(self, own_valkey: Valkey) -> None:
        async with RedisStore(own_valkey.url, required=True):
            assert open_connections(own_valkey) == 1

    async def test_closed_store_raises(self, valkey: Valkey) -> None:
        async with RedisStore(valkey.url) as store:
            await store.get(KEY)
        await store.aclose()

        for operation in OPERATIONS.values():
            with pytest.raises(StoreError, match="closed"):
                await operation(store)

    @pytest.mark.parametrize("calls", [1, 100])
    @pytest.mark.parametrize("operation", ["get", "acquire"])
    async def test_closing_ends_hanging_calls_and_leaves_no_connection(
        self, own_valkey: Valkey, calls: int, operation: str
    ) -> None:
        async def call(store: RedisStore) -> None:
            with pytest.raises(StoreError, match="closed"):
                await OPERATIONS[operation](store)

        async with RedisStore(own_valkey.url) as store:
            await store.get(KEY)
            own_valkey.pause()
            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(call, store)
                await anyio.wait_all_tasks_blocked()
                with anyio.fail_after(_TIMEOUT_SECONDS):
                    await store.aclose()
        own_valkey.resume()

        await _until(lambda: open_connections(own_valkey) == 0)


class TestFailures:
    @pytest.mark.parametrize("calls", [1, 100])
    async def test_calls_work_again_after_the_server_has_hung(
        self, own_valkey: Valkey, calls: int, set_timeout: Callable[[float], None]
    ) -> None:
        async def call(store: RedisStore) -> None:
            with pytest.raises(StoreError, match=r"no response within 0\.3 s"):
                await store.get(KEY)

        async with RedisStore(own_valkey.url) as store:
            await store.update(KEY, to(b"1"))
            own_valkey.pause()
            set_timeout(0.3)
            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(call, store)
            own_valkey.resume()
            set_timeout(_TIMEOUT_SECONDS)
            values = [await store.get(KEY) for _ in range(50)]

        assert values == [b"1"] * 50

    async def test_update_whose_response_is_lost_raises_and_is_applied_once(
        self, valkey: Valkey, prefix: str, serve: Callable[..., LoopbackServer]
    ) -> None:
        """A retry would apply it again."""

        def cut_before_response(_request: Request, connection: Connection) -> None:
            with socket.create_connection(("127.0.0.1", valkey.port)) as plain:
                while data := connection.receive():
                    plain.sendall(data)
                    response = plain.recv(65_536)
                    if b"ours" in data and response == b":1\r\n":
                        return
                    connection.send(response)

        server = serve(cut_before_response, reads_requests=False)
        calls: list[bytes | None] = []

        def change(kept: bytes | None) -> tuple[bytes, None]:
            calls.append(kept)
            return (kept or b"") + b"ours", None

        async with RedisStore(
            f"redis://127.0.0.1:{server.port}", prefix=prefix
        ) as store:
            with pytest.raises(StoreError, match="Redis failed"):
                await store.update(KEY, change)
            value = await store.get(KEY)

        assert calls == [None]
        assert value == b"ours"

    async def test_store_works_again_once_the_server_is_back(
        self, own_valkey: Valkey
    ) -> None:
        async with RedisStore(own_valkey.url) as store:
            await store.update(KEY, to(b"1"))
            own_valkey.kill()
            for operation in OPERATIONS.values():
                with pytest.raises(StoreError, match="Redis failed"):
                    await operation(store)
            own_valkey.start()
            assert await store.get(KEY) is None
            await store.update(KEY, to(b"2"))
            assert await store.get(KEY) == b"2"


class TestCancellation:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("operation", OPERATIONS)
    async def test_store_works_after_a_call_is_cancelled_at_any_point(
        self, valkey: Valkey, prefix: str, way: str, operation: str
    ) -> None:
        async with RedisStore(valkey.url, prefix=prefix) as store:
            await store.update("other", to(b"other"))
            count = await suspensions(lambda: OPERATIONS[operation](store))
            for number in range(1, count + 1):
                await store.release(KEY, "one")
                await cancelled_at(
                    number, lambda: OPERATIONS[operation](store), way=way
                )
                assert await store.get("other") == b"other"
                assert await store.get(KEY) in (None, b"new")
            # A cancelled call may leave its lease to be released by another task.
            await _until(lambda: not store._acquisitions)
            assert open_connections(valkey) <= 2

        assert count > 0

    @pytest.mark.parametrize("way", WAYS)
    async def test_connections_are_closed_even_if_that_is_cancelled(
        self, own_valkey: Valkey, way: str
    ) -> None:
        store = await RedisStore(own_valkey.url).__aenter__()
        await store.update(KEY, to(b"1"))

        await cancelled_at(1, store.aclose, way=way)

        await _until(lambda: open_connections(own_valkey) == 0)

    async def test_lease_whose_caller_gave_up_while_acquiring_it_is_free(
        self, own_valkey: Valkey
    ) -> None:
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(RedisStore(own_valkey.url))
            await store.get(KEY)
            own_valkey.pause()
            with anyio.move_on_after(0.05):
                await store.acquire(KEY, "one", 60.0)
            own_valkey.resume()
            with anyio.fail_after(_TIMEOUT_SECONDS):
                while not await store.acquire(KEY, "other", 60.0):
                    await anyio.lowlevel.checkpoint()
