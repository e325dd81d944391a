"""Draws the pictures of the command line: `python docs/pictures.py`, on Linux.

The program runs in a pseudo-terminal, with a local server as its proxy, so that the
pictures can show sites that do not exist.
The pictures of the tester page are drawn by its test:
`ROBOTSGATE_PICTURES=docs/pictures pytest -m slow tests/cli/test_tester_page.py`.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

_FOLDER = Path(__file__).parent / "pictures"
_COLUMNS = 96

_BODY = b"""\
User-agent: ExampleBot
Allow: /archive/public
Disallow: /archive
Disalow: /drafts
Disallow private

User-agent: *
Crawl-delay: 5
User-agent: OtherBot
Disallow: /search?q=#results
Allow: /search?q=
Disallow: /search?q=
"""

# Browsers would load the font of rich's template from elsewhere.
_TEMPLATE = re.sub(r"@font-face {{.*?}}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


class _Site(BaseHTTPRequestHandler):
    """Serves the same file for every request."""

    def do_GET(self) -> None:
        """Send the file."""
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(_BODY)))
        self.end_headers()
        self.wfile.write(_BODY)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    """Accepts many connections at once."""

    request_queue_size = 128


def main() -> None:
    """Draw all pictures."""
    _FOLDER.mkdir(exist_ok=True)
    server = _Server(("127.0.0.1", 0), _Site)
    Thread(target=server.serve_forever, daemon=True).start()
    proxy = f"http://127.0.0.1:{server.server_port}"
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("robots.txt").write_bytes(_BODY)
        Path("urls.txt").write_text(
            "".join(
                f"http://site{number % 30}.example/archive/{number}\n"
                for number in range(1_000_000)
            )
        )
        url = "http://example.com/archive/2026"
        _draw("check", ["check", "-a", "ExampleBot", "--explain", url], proxy)
        _draw("lint", ["lint", "robots.txt"])
        _draw("filter", ["filter", "-a", "OtherBot"], proxy, stdin="urls.txt")
    server.shutdown()


def _draw(
    name: str,
    arguments: list[str],
    proxy: str | None = None,
    *,
    stdin: str | None = None,
) -> None:
    """Draw the output of the program; of a progress bar, a frame from the middle."""
    command = [*arguments, "--proxy", proxy] if proxy else arguments
    output = _output(command, stdin)
    if stdin is not None:
        frames = [frame for frame in output.split("\r\x1b[2K") if " failed " in frame]
        output = frames[len(frames) // 2]
    console = Console(record=True, width=_COLUMNS, file=StringIO())
    typed = f"$ robotsgate {' '.join(arguments)}" + (f" < {stdin}" if stdin else "")
    console.print(Text(typed, style="bold"))
    console.print(Text.from_ansi(output.replace("\r", "")))
    picture = console.export_svg(
        title="robotsgate", code_format=_TEMPLATE, unique_id=f"robotsgate-{name}"
    )
    path = _FOLDER / f"{name}.svg"
    path.write_text(re.sub(r"[ \t]+$", "", picture, flags=re.MULTILINE) + "\n")
    sys.stderr.write(f"{path}\n")


def _output(command: list[str], stdin: str | None) -> str:
    """The output of the program in a terminal."""
    parent, terminal = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": str(_COLUMNS)}
    with (
        Path(stdin or os.devnull).open("rb") as source,
        subprocess.Popen(  # noqa: S603 (our own program)
            [sys.executable, "-m", "robotsgate", *command],
            stdin=source,
            stdout=subprocess.DEVNULL if stdin else terminal,
            stderr=terminal,
            env=environment,
        ),
    ):
        os.close(terminal)
        output = b""
        with suppress(OSError):  # the program has ended
            while block := os.read(parent, 65_536):
                output += block
    os.close(parent)
    return output.decode()


if __name__ == "__main__":
    main()
