"""Which modules are loaded when; import-linter and ruff check the rest."""

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
from tests.mutants import MUTANTS
from tests.servers.answers import Reply

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from types import ModuleType

    import trustme

    from tests.servers.loopback import LoopbackServer

PUBLIC = {*robotsgate.__all__, *robotsgate._EXTRA_HOMES}
PACKAGE = Path(robotsgate.__file__).parent
IO_LIBRARIES = {
    "anyio", "asyncio", "cachetools", "h11", "httpcore", "httpx", "socket", "sqlite3",
    "ssl",
}  # fmt: skip
# Modules that take milliseconds to load and are rarely needed.
RARELY_NEEDED = {
    "datetime", "email", "ftplib", "hmac", "html", "http_sf", "idna",
    "importlib.metadata", "robotsgate.robotstxt._lint",
    "robotsgate.robotstxt._usage_preferences", "secrets", "urllib.parse",
}  # fmt: skip
NOT_FOR_PARSING = IO_LIBRARIES | RARELY_NEEDED | {"ipaddress", "logging"}
NOT_FOR_CHECKS = RARELY_NEEDED | {
    "httpcore", "httpx", "pytest", "redis", "respx", "robotsgate.events",
    "robotsgate.testing", "sqlite3", "trio",
}  # fmt: skip


def modules_after(statement: str) -> set[str]:
    """The modules that a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    # Coverage loads half of the standard library.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("COVERAGE")
    }
    process = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-W", "error", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return set(json.loads(process.stdout))


@pytest.mark.parametrize("module", [
    "robotstxt", "urls", "caching", "cli._explain", "archive", "errors", "events",
    "page",
])  # fmt: skip
def test_pure_module_loads_no_io_libraries(module: str) -> None:
    loaded = modules_after(f"import robotsgate.{module}")

    assert f"robotsgate.{module}" in loaded
    assert loaded & IO_LIBRARIES == set()


def test_importing_the_package_loads_none_of_its_modules() -> None:
    loaded = modules_after("import robotsgate")

    assert {name for name in loaded if name.startswith("robotsgate.")} == set()
    assert loaded & {"dataclasses", *IO_LIBRARIES} == set()


def test_parsing_loads_no_rarely_needed_modules() -> None:
    loaded = modules_after(
        "from robotsgate import RobotsTxt\n"
        "robots = RobotsTxt.parse('User-agent: *\\nDisallow: /private')\n"
        "assert not robots.can_fetch('ExampleBot/1.0', 'https://example.com/private')"
    )

    assert loaded & NOT_FOR_PARSING == set()


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_first_check_loads_no_rarely_needed_modules(
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

    assert loaded & NOT_FOR_CHECKS == set()


def test_integration_of_an_async_client_loads_no_blocking_code() -> None:
    loaded = modules_after("from robotsgate.integrations import hops, httpx")

    assert loaded & {"robotsgate.sync", "httpx2", "requests"} == set()


@pytest.mark.parametrize(
    ("line", "is_loaded"), [("Disallow: /", False), ("Content-Usage: search=n", True)]
)
def test_structured_fields_are_loaded_only_for_content_usage(
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


def test_imports_for_type_checkers_match_the_lazy_imports() -> None:
    source = (PACKAGE / "__init__.py").read_text()
    loaded: dict[str, object] = {}
    exec(source.replace("if TYPE_CHECKING:", "if True:"), loaded)  # noqa: S102

    declared = {name for name in loaded if name[:1].isupper() or name in PUBLIC}
    assert declared - {"TYPE_CHECKING"} == PUBLIC
    for name in PUBLIC:
        assert loaded[name] is getattr(robotsgate, name), name


@pytest.mark.parametrize("name", robotsgate._EXTRA_HOMES)
def test_using_a_name_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "robotsgate.stores.redis", raising=False)
    monkeypatch.delitem(vars(robotsgate), name, raising=False)

    with pytest.raises(ImportError, match=r"pip install '\.\[redis\]'"):
        getattr(robotsgate, name)


@pytest.mark.parametrize(("name", "dependency"), [
    ("aiohttp", "aiohttp"), ("crawlee", "crawlee.crawlers"), ("requests", "requests"),
    ("scrapy", "scrapy"), ("scrapy_playwright", "scrapy"), ("warc", "fastwarc.warc"),
])  # fmt: skip
def test_importing_an_integration_without_its_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, dependency: str
) -> None:
    monkeypatch.setitem(sys.modules, dependency, None)
    monkeypatch.delitem(sys.modules, f"robotsgate.integrations.{name}", raising=False)

    extra = name.replace("_", "-")
    with pytest.raises(ImportError, match=rf"pip install '\.\[{extra}\]'"):
        importlib.import_module(f"robotsgate.integrations.{name}")


@pytest.mark.parametrize("package", [robotsgate, robotsgate.robotstxt])
def test_dir_lists_the_public_names(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)


@pytest.mark.parametrize("package", [robotsgate, robotsgate.robotstxt])
def test_unknown_name_raises_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'RobotChecker'"):
        _ = package.RobotChecker


def test_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_each_mutant_changes_one_line_of_the_source_and_names_tests() -> None:
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    tests = Path(__file__).parents[1]

    assert [
        one
        for one in MUTANTS
        if source.count(one.old) != 1
        or one.old == one.new
        or not (tests / one.tests).exists()
    ] == []


def test_our_own_tests_do_not_run_in_auto_mode() -> None:
    command = "-m pytest -o asyncio_mode=auto --collect-only -n 0 -p no:cacheprovider"

    result = subprocess.run(  # noqa: S603 (pytest itself)
        [sys.executable, *command.split(), __file__],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )

    assert "expected asyncio_mode to be strict, got auto" in result.stderr
