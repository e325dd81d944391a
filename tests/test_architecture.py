"""What is loaded when; import-linter and ruff hold everything else."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import robotsgate
import robotsgate.robotstxt
from tests.servers.answers import Reply

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from types import ModuleType

    import trustme

    from tests.servers.loopback import LoopbackServer

PUBLIC = {*robotsgate.__all__, *robotsgate._EXTRA_HOMES}
PACKAGE = Path(robotsgate.__file__).parent
WORLD = {
    "anyio",
    "asyncio",
    "cachetools",
    "h11",
    "httpcore",
    "httpx",
    "socket",
    "sqlite3",
    "ssl",
}
# What takes milliseconds to load, and only unusual files, hosts or questions need.
RARELY_NEEDED = {
    "datetime",
    "email",
    "ftplib",
    "hmac",
    "html",
    "http_sf",
    "idna",
    "importlib.metadata",
    "robotsgate.robotstxt._diagnose",
    "robotsgate.robotstxt._lint",
    "robotsgate.robotstxt._usage_preferences",
    "secrets",
    "urllib.parse",
}
NOT_OF_A_PARSER = WORLD | RARELY_NEEDED | {"ipaddress", "logging"}
NOT_OF_A_CHECKER = RARELY_NEEDED | {
    "coredis",
    "httpcore",
    "httpx",
    "pytest",
    "respx",
    "robotsgate.checking._events",
    "robotsgate.testing",
    "sqlite3",
    "trio",
}


def modules_after(statement: str) -> set[str]:
    """What a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    # Coverage loads half of the standard library.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE")
    }
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "room",
    [
        "robotstxt",
        "urls",
        "caching",
        "cli.tester._answers",
        "archive",
        "errors",
        "politeness._host_record",
        "page",
    ],
)
def test_pure_room_loads_nothing_of_the_world(room: str) -> None:
    loaded = modules_after(f"import robotsgate.{room}")

    assert f"robotsgate.{room}" in loaded
    assert loaded & WORLD == set()


def test_package_alone_loads_none_of_its_modules() -> None:
    loaded = modules_after("import robotsgate")

    assert {name for name in loaded if name.startswith("robotsgate.")} == set()
    assert loaded & {"dataclasses", *WORLD} == set()


def test_first_answer_of_a_file_loads_no_more_than_it_needs() -> None:
    loaded = modules_after(
        "from robotsgate import RobotsTxt\n"
        "robots = RobotsTxt.parse('User-agent: *\\nDisallow: /private')\n"
        "assert not robots.can_fetch('ExampleBot/1.0', 'https://example.com/private')"
    )

    assert loaded & NOT_OF_A_PARSER == set()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_first_question_of_a_checker_loads_no_more_than_it_needs(
    serve: Callable[..., LoopbackServer],
    server_tls: ssl.SSLContext,
    certificate_authority: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    scheme: str,
) -> None:
    pem = str(tmp_path / "authority.pem")
    certificate_authority.cert_pem.write_to_path(pem)
    monkeypatch.setenv("SSL_CERT_FILE", pem)
    tls = {"ssl_context": server_tls} if scheme == "https" else {}
    server = serve(Reply(body=b"User-agent: *\nDisallow: /private"), **tls)

    loaded = modules_after(
        "import asyncio\n"
        "from robotsgate import RobotsChecker\n"
        "async def main():\n"
        "    async with RobotsChecker(user_agent='ExampleBot/1.0') as checker:\n"
        f"        site = '{server.url}'\n"
        "        assert await checker.can_fetch('ExampleBot', site + '/public')\n"
        "        assert not await checker.can_fetch('ExampleBot', site + '/private')\n"
        "asyncio.run(main())"
    )

    assert loaded & NOT_OF_A_CHECKER == set()


def test_wrap_of_an_asynchronous_client_loads_no_blocking_front() -> None:
    loaded = modules_after("from robotsgate.integrations import hops, httpx")

    assert loaded & {"robotsgate.sync", "httpx2", "requests"} == set()


@pytest.mark.parametrize(
    ("line", "is_loaded"), [("Disallow: /", False), ("Content-Usage: search=n", True)]
)
def test_structured_fields_are_loaded_for_a_content_usage(
    line: str, *, is_loaded: bool
) -> None:
    rules = f"User-agent: *\n{line}\n"
    loaded = modules_after(
        "from robotsgate import RobotsTxt\n"
        f"RobotsTxt.parse({rules!r}).usage_preferences('Bot', '/')"
    )

    assert ("http_sf" in loaded) == is_loaded


@pytest.mark.parametrize(
    "module", ["stores", "fetching", "checking", "politeness", "testing"]
)
def test_module_can_be_imported_first(module: str) -> None:
    assert f"robotsgate.{module}" in modules_after(f"import robotsgate.{module}")


def test_each_public_name_is_declared_where_it_is_loaded_from() -> None:
    """The imports for type checkers and the table for the interpreter are one."""
    source = (PACKAGE / "__init__.py").read_text()
    loaded: dict[str, object] = {}
    exec(source.replace("if TYPE_CHECKING:", "if True:"), loaded)  # noqa: S102

    declared = {name for name in loaded if name[:1].isupper() or name in PUBLIC}
    assert declared - {"TYPE_CHECKING"} == PUBLIC
    for name in PUBLIC:
        assert loaded[name] is getattr(robotsgate, name), name


@pytest.mark.parametrize("name", robotsgate._EXTRA_HOMES)
def test_name_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "coredis", None)
    for module in ("politeness.redis_ledger", "stores.redis", "stores._redis_server"):
        monkeypatch.delitem(sys.modules, f"robotsgate.{module}", raising=False)
    monkeypatch.delitem(vars(robotsgate), name, raising=False)

    with pytest.raises(ImportError, match=rf"{name} .* 'robotsgate\[redis\]'"):
        getattr(robotsgate, name)


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("aiohttp", "aiohttp"),
        ("niquests", "niquests"),
        ("crawlee", "crawlee.crawlers"),
        ("otel", "opentelemetry"),
        ("requests", "requests"),
        ("scrapy", "scrapy"),
        ("scrapy_playwright", "scrapy"),
        ("warc", "fastwarc"),
    ],
)
def test_integration_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, needed: str
) -> None:
    monkeypatch.setitem(sys.modules, needed, None)
    monkeypatch.delitem(sys.modules, f"robotsgate.integrations.{name}", raising=False)

    extra = name.replace("_", "-")
    with pytest.raises(ImportError, match=rf"pip install 'robotsgate\[{extra}\]'"):
        importlib.import_module(f"robotsgate.integrations.{name}")


def test_missing_module_of_another_name_is_told_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "robotsgate.stores.sqlite", None)
    monkeypatch.delitem(vars(robotsgate), "SQLiteStore", raising=False)

    with pytest.raises(ModuleNotFoundError, match="sqlite"):
        _ = robotsgate.SQLiteStore


@pytest.mark.parametrize("package", [robotsgate, robotsgate.robotstxt])
def test_dir_lists_the_public_names(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", [robotsgate, robotsgate.robotstxt])
def test_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'RobotChecker'"):
        _ = package.RobotChecker


def test_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
