"""Builds the tables about wrapped clients in the docs.

Reads the source of the integrations, because not every client is installed.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    Rows = Iterator[tuple[str, ...]]

_ROOT = Path(__file__).parents[1]
_INTEGRATIONS = _ROOT / "src/robotsgate/integrations"

_AT_ONCE = "before they are followed"
_IN_BROWSERS = f"in Chromium, {_AT_ONCE}; in Firefox and WebKit, afterwards"
_IN_ERRBACK = "reaches the errback as `IgnoreRequest`"
_NO_SUCCESS = "returns a result with `success=False`"
_SKIPPED = "is skipped and passed to `on_skipped_request`"


class _Client(NamedTuple):
    """A row of `client_rows`.

    Attributes:
        link: the link's text and target.
        file: a program or page that contains all `lines`.
        wrap: the function or class of the integration.
        lines: a part of each line to add, apart from imports.
        packages: the packages whose versions are shown.
        refusal: the effect of a refused request; `None`: the integration's error.
        redirects: when redirects are checked.
        delays: whether delays are kept; `None`: if `wrap` accepts a gate.
    """

    link: tuple[str, str]
    file: str
    wrap: str
    lines: tuple[str, ...]
    packages: tuple[str, ...]
    refusal: str | None = None
    redirects: str = _AT_ONCE
    delays: str | None = None


_CHECKER = "RobotsChecker(user_agent="
_GATE = "PolitenessGate(checker, "
_SETTINGS = ('"DOWNLOADER_MIDDLEWARES": {', 'RobotsTxtMiddleware": None,')

_CLIENTS = (
    _Client(
        ("httpx, httpx2", "use-with-httpx.md"),
        "examples/wrap_httpx.py",
        "robots_hook",
        (_CHECKER, "[robots_hook("),
        ("httpx", "httpx2"),
    ),
    _Client(
        ("httpx, httpx2, with a transport", "use-with-httpx.md#as-a-transport"),
        "examples/wrap_httpx_blocking.py",
        "RobotsTransport",
        (_CHECKER, _GATE, "=RobotsTransport("),
        ("httpx", "httpx2"),
    ),
    _Client(
        ("aiohttp", "use-with-aiohttp.md"),
        "examples/wrap_aiohttp.py",
        "robots_middleware",
        (_CHECKER, "(robots_middleware("),
        ("aiohttp",),
    ),
    _Client(
        ("requests", "use-with-requests.md"),
        "examples/wrap_requests.py",
        "RobotsAdapter",
        (_CHECKER, "for scheme in", "session.mount(scheme, RobotsAdapter("),
        ("requests",),
    ),
    _Client(
        ("curl_cffi, and any other client", "use-with-any-client.md"),
        "examples/wrap_curl_cffi.py",
        "robots_get",
        (_CHECKER, "= robots_get("),
        ("curl_cffi",),
        refusal="raises `DisallowedError`",
    ),
    _Client(
        ("Scrapy", "use-with-scrapy.md"),
        "examples/scrapy_spider.py",
        "RobotsGateMiddleware",
        (*_SETTINGS, 'scrapy.RobotsGateMiddleware": 100,', "},"),
        ("scrapy",),
        refusal=_IN_ERRBACK,
        delays="yes",
    ),
    _Client(
        ("scrapy-playwright", "use-with-scrapy.md#with-scrapy-playwright"),
        "docs/how-to/use-with-scrapy.md",
        "RobotsGatePlaywrightMiddleware",
        (*_SETTINGS, 'wright.RobotsGatePlaywrightMiddleware": 100,', "},"),
        ("scrapy-playwright",),
        refusal=_IN_ERRBACK,
        redirects=_IN_BROWSERS,
        delays="yes, but not between redirects",
    ),
    _Client(
        ("crawlee", "use-with-crawlee.md"),
        "examples/crawlee_crawler.py",
        "obey_robots",
        (_CHECKER, "= obey_robots("),
        ("crawlee",),
        refusal=_SKIPPED,
    ),
    _Client(
        ("crawlee, in a browser", "use-with-crawlee.md#in-a-browser"),
        "examples/crawlee_crawler.py",
        "obey_robots",
        (_CHECKER, "= obey_robots("),
        ("crawlee",),
        refusal=_SKIPPED,
        redirects=_IN_BROWSERS,
        delays="with `gate=`; in Firefox and WebKit, not between redirects",
    ),
    _Client(
        ("crawl4ai, in a browser", "use-with-crawl4ai.md"),
        "examples/wrap_crawl4ai.py",
        "RobotsParser",
        (
            *(_CHECKER, "= RobotsParser(", ".robots_parser ="),
            *(".check_page", ".check_html", "_txt=True"),
        ),
        ("crawl4ai",),
        refusal=_NO_SUCCESS,
        redirects=f"in Chromium, {_AT_ONCE}; other browsers are not supported",
    ),
    _Client(
        ("crawl4ai, without a browser", "use-with-crawl4ai.md#without-a-browser"),
        "examples/wrap_crawl4ai.py",
        "robots_middleware",
        (
            *(_CHECKER, _GATE, "= robots_middleware(", "def add_middleware("),
            *('["middlewares"] = [obey]', 'set_hook("before_request"'),
        ),
        ("crawl4ai",),
        refusal=_NO_SUCCESS,
    ),
    _Client(
        ("a fetch tool (MCP)", "use-in-a-fetch-tool.md"),
        "examples/mcp_fetch_server.py",
        "robots_middleware",
        ("RobotsChecker(", _GATE, "[robots_middleware("),
        ("mcp",),
        refusal="makes the tool fail with the verdict",
    ),
)


def client_rows() -> Rows:
    """The lines to add for each client, their effect, and the supported versions."""
    yield (
        "client",
        "lines to add",
        "a refused request",
        "redirects are checked",
        "crawl-delays are obeyed",
        "versions tested",
    )
    errors = {client: base for client, _, base in _errors()}
    for client in _CLIENTS:
        text = (_ROOT / client.file).read_text(encoding="utf-8")
        assert [part for part in client.lines if part not in text] == []
        theirs = [f"`{errors[name]}`" for name in client.packages if name in errors]
        yield (
            "[{}]({})".format(*client.link),
            f"{len(client.lines)}, with `{client.wrap}`",
            client.refusal or f"raises a subclass of {' or '.join(theirs)}",
            client.redirects,
            client.delays or ("with `gate=`" if _takes_gate(client.wrap) else "no"),
            "<br>".join(map(_versions, client.packages)),
        )


def refusal_rows() -> Rows:
    """The errors that wrapped clients raise."""
    yield "client", "raises", "a subclass of", "verdict"
    for client, error, base in _errors():
        yield client, f"`{error}`", f"`DisallowedError`, `{base}`", "`error.verdict`"
    yield "Scrapy", "`scrapy.exceptions.IgnoreRequest`", "", "`error.__cause__.verdict`"
    yield (
        "`robots_get`, crawlee's `context.send_request`, and a gate's `turn`",
        "`DisallowedError`",
        "",
        "`error.verdict`",
    )


def _errors() -> Iterator[tuple[str, str, str]]:
    """The clients with their own error: (client, error, its base in the client)."""
    for module, node in _definitions():
        if isinstance(node, ast.ClassDef) and node.name == "RobotsDisallowedError":
            ours, theirs = map(ast.unparse, node.bases)
            assert ours in {"DisallowedError", "DisallowedRequestError"}
            client = module.removeprefix("_")
            place = f"robotsgate.integrations.{module}." * (client == module)
            yield client, f"{place}{node.name}", theirs


def _takes_gate(wrap: str) -> bool:
    """Whether the function or class `wrap` has a parameter `gate`."""
    return any(
        isinstance(argument, ast.arg) and argument.arg == "gate"
        for _, node in _definitions()
        if getattr(node, "name", None) == wrap
        for argument in ast.walk(node)
    )


@cache
def _definitions() -> list[tuple[str, ast.stmt]]:
    """The statements of the integrations as (module, statement), sorted by client."""
    files = _INTEGRATIONS.glob("*.py")
    return [
        (file.stem, node)
        for file in sorted(files, key=lambda file: file.stem.removeprefix("_"))
        for node in ast.parse(file.read_text(encoding="utf-8")).body
    ]


def _versions(package: str) -> str:
    """The supported versions of `package`, and whether the oldest is tested."""
    run = (_ROOT / ".ci/run").read_text(encoding="utf-8")
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8") + run
    pattern = rf"[\"']{package}>=([\d.]+),(<[\d.]+)[\"']"
    [(oldest, limit)] = set(re.findall(pattern, text))
    is_oldest_tested = re.search(rf"'{package}=={oldest}(\.0)*'", run)
    note = " (oldest also tested)" if is_oldest_tested else ""
    return f"`{package}>={oldest},{limit}`{note}"
