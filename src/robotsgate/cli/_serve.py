"""`robotsgate serve`: serves the tester page."""

from __future__ import annotations

import socket
from dataclasses import replace

import anyio
import click

from robotsgate import AddressGuard, SystemClock
from robotsgate.cli._options import Settings, fetching_options
from robotsgate.cli._shell import tell


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@click.option(
    "--allow-private",
    "allows_private",
    is_flag=True,
    help="Also fetch from private and loopback addresses. The page is then available"
    " only under the --host name, IP addresses and localhost.",
)
@fetching_options
def serve(*, host: str, port: int, allows_private: bool, settings: Settings) -> None:
    """Serve a web page for testing a robots.txt.

    Paste a file or enter a URL, add agents and paths, and see the results at once.
    Anyone who can open the page can make this machine fetch files, but only from public
    addresses and at a limited rate.

    \b
    Examples:
      robotsgate serve
      robotsgate serve --host 0.0.0.0 --port 80
    """  # noqa: D301 (\b stops click from rewrapping)
    if not allows_private:
        policy = replace(settings.policy, address_guard=AddressGuard.PUBLIC_ONLY)
        settings = replace(settings, policy=policy)
    own_name = host if allows_private else None
    anyio.run(_serve, host, port, settings, own_name)


async def _serve(
    host: str, port: int, settings: Settings, own_name: str | None
) -> None:
    try:
        # Imported here because only this command needs the extra.
        from robotsgate.cli.tester._app import page_app  # noqa: PLC0415
        from robotsgate.cli.tester._server import page_server  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise click.ClickException(
            "the page needs the tester extra: pip install 'robotsgate[cli,tester]'"
        ) from error
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listener:
        name = f"[{host}]" if ":" in host else host
        async with settings.checker() as checker:
            app = page_app(
                checker,
                monotonic=SystemClock().monotonic,
                own_name=own_name,
            )
            server = page_server(app, fetch_seconds=settings.policy.fetch_deadline)
            tell(f"http://{name}:{listener.getsockname()[1]}/")
            await server.serve(sockets=[listener])
