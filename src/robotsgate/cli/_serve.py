"""`robotsgate serve`: serves the tester page."""

from __future__ import annotations

import click

from robotsgate.cli._options import Settings, fetching_options
from robotsgate.cli._shell import tell


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@fetching_options
def serve(*, port: int, settings: Settings) -> None:
    """Serve a web page for testing a robots.txt, only on this machine.

    Paste a file or enter a URL, add agents and paths, and see the results at once.

    \b
    Example:
      robotsgate serve
    """  # noqa: D301 (\b stops click from rewrapping)
    from robotsgate.cli.tester._server import PageServer  # noqa: PLC0415 (slow)

    with (
        settings.blocking_checker() as checker,
        PageServer(checker, port=port) as server,
    ):
        tell(f"http://127.0.0.1:{server.server_address[1]}/")
        server.serve_forever()
