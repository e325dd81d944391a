"""Ask robotsgate about real robots.txt files, well-behaved ones and others.

Without arguments it starts small HTTP servers on this machine, each with another
way to answer, and asks about a few URLs of theirs. With arguments it asks about
those URLs instead:

    python examples/quickstart.py https://example.com/private https://example.org/
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, cast

import anyio

from robotsgate import AccessResult, RobotsChecker, RobotsError, SystemClock
from robotsgate.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate import Verdict

AGENT = "ExampleBot"
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"

RULES = """\
# Everybody keeps out of /private, but for one page.
User-agent: *
Disallow: /private
Allow: /private/press.html
Disallow: /*.pdf$
Crawl-delay: 2

User-agent: GreedyBot
Disallow: /
"""


async def ask_about(urls: list[str]) -> None:
    """Ask the real web: this is all it takes."""
    async with RobotsChecker(user_agent=USER_AGENT) as checker:
        for url in urls:
            try:
                verdict = await checker.check(AGENT, url)
            except RobotsError as error:
                print(url, f"no question: {error}", sep="\n    ")
            else:
                print(url, verdict, sep="\n    ")


async def ask_the_local_servers() -> None:
    """Ask one server for each way in which a robots.txt can turn out."""
    # A clock to turn, so that a day passes without anybody waiting for it.
    clock = ManualClock(SystemClock().now())
    with ExitStack() as running:
        origins = start_servers(running)
        async with RobotsChecker(user_agent=USER_AGENT, clock=clock) as checker:
            print_row("SERVER", "URL", "AGENT", "MAY?", "REASON", "RULE", "STATE")
            for server, agent, path in QUESTIONS:
                url = origins[server] + path
                print_verdict(server, agent, url, await checker.check(agent, url))

            print("\nA day later the copy has run out, and its server is down:")
            clock.advance(25 * 60 * 60)
            diary = origins["up, then 503"] + "/private"
            verdict = await checker.check(AGENT, diary)
            print_verdict("up, then 503", AGENT, diary, verdict)

            print(f"\nThe same as a sentence: {verdict}.")
            delay = await checker.crawl_delay(AGENT, origins["rules"])
            print(f"Crawl-delay: {delay} s")
            print(f"Counted: {checker.stats}")


QUESTIONS = [
    ("rules", AGENT, "/"),
    ("rules", AGENT, "/private/diary"),
    ("rules", AGENT, "/private/press.html"),
    ("rules", AGENT, "/report.pdf"),
    ("rules", AGENT, "/report.pdf?page=2"),
    ("rules", "GreedyBot/2.1", "/"),
    ("rules", "GreedyBot/2.1", "/robots.txt"),
    ("404", AGENT, "/private"),
    ("401", AGENT, "/private"),
    ("429", AGENT, "/"),
    ("up, then 503", AGENT, "/private"),
    ("5 redirects", AGENT, "/private"),
    ("6 redirects", AGENT, "/private"),
    ("loop", AGENT, "/private"),
    ("dead port", AGENT, "/"),
    ("truncated", AGENT, "/"),
    ("2 MiB", AGENT, "/private"),
    ("2 MiB", AGENT, "/beyond-500-KiB"),
    ("HTML page", AGENT, "/private"),
]


def print_verdict(server: str, agent: str, url: str, verdict: Verdict) -> None:
    """One line of the table."""
    state = "fresh"
    if verdict.access is AccessResult.UNREACHABLE:
        state = "stale" if verdict.is_stale else "no copy"
    print_row(
        server,
        url,
        agent,
        "yes" if verdict.allowed else "no",
        verdict.reason.value,
        f"{verdict.rule.line}: {verdict.rule}" if verdict.rule else "-",
        state,
    )


def print_row(*cells: str) -> None:
    """Cells in columns."""
    widths = (12, 38, 13, 4, 18, 30, 7)
    row = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    print("  ".join(row).rstrip())


# --- The servers: nothing below is needed to use robotsgate -----------------------


def start_servers(running: ExitStack) -> dict[str, str]:
    """The origins of the servers, by what they do; `running` ends them."""
    answers: dict[str, list[Answer]] = {
        "rules": [answer_with(200, RULES)],
        "404": [answer_with(404)],
        "401": [answer_with(401)],
        "429": [answer_with(429, headers={"Retry-After": "120"})],
        "up, then 503": [answer_with(200, RULES), answer_with(503)],
        "5 redirects": [redirect_times(5)],
        "6 redirects": [redirect_times(6)],
        "loop": [answer_with(302, headers={"Location": "/robots.txt"})],
        "truncated": [truncate],
        "2 MiB": [answer_with(200, huge_robots_txt())],
        "HTML page": [answer_with(200, "<h1>Welcome</h1>")],
    }
    origins = {
        name: running.enter_context(serving(*given)) for name, given in answers.items()
    }
    with serving(answer_with(200)) as dead_port:
        origins["dead port"] = dead_port  # nobody listens there after this block
    return origins


class Server(ThreadingHTTPServer):
    """An origin that answers its first, second, … request in its own way."""

    def __init__(self, answers: tuple[Answer, ...]) -> None:
        """Listen on any free port of this machine."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = list(answers)

    def next_answer(self) -> Answer:
        """The answer to the next request; the last one stays."""
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Handler(BaseHTTPRequestHandler):
    """One request to a `Server`."""

    def do_GET(self) -> None:
        """Answer as the server says."""
        answer = cast("Server", self.server).next_answer()
        answer(self)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


Answer = Callable[[Handler], None]


@contextmanager
def serving(*answers: Answer) -> Iterator[str]:
    """The origin of a server that runs until the end of the block."""
    server = Server(answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer_with(
    status: int, body: str = "", headers: dict[str, str] | None = None
) -> Answer:
    """A well-formed response."""

    def answer(handler: Handler) -> None:
        content = body.encode()
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def redirect_times(times: int) -> Answer:
    """So many redirects to this very server, and then the rules."""

    def answer(handler: Handler) -> None:
        hop = int(handler.path.partition("hop=")[2] or 0)
        if hop < times:
            location = f"/robots.txt?hop={hop + 1}"
            answer_with(302, headers={"Location": location})(handler)
        else:
            answer_with(200, RULES)(handler)

    return answer


def truncate(handler: Handler) -> None:
    """A response that ends before its announced length."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"User-agent: *\nAllow: /")


def huge_robots_txt() -> str:
    """Two mebibytes; only the first 500 KiB count."""
    filler = "# nothing to see here\n" * 100_000
    return f"{RULES}{filler}User-agent: *\nDisallow: /beyond-500-KiB\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(ask_about, sys.argv[1:])
    else:
        anyio.run(ask_the_local_servers)
