"""Where and with what a run took place; nothing that tells machines apart."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata

from benchmarks.peers import installed_peers

__all__ = ["surroundings"]

_OWN = ("robotsgate", "httpx", "httpcore", "anyio", "cachetools")


def surroundings() -> dict[str, str]:
    """Pairs (what, which), in the order to be shown."""
    peers = (peer.distribution for peer in installed_peers().values())
    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}"
        f" ({platform.python_compiler()})",
        "cores": str(os.cpu_count()),
        "system": f"{_system()}, {platform.machine()}",
        "packages": ", ".join(
            f"{name} {metadata.version(name)}" for name in (*_OWN, *filter(None, peers))
        ),
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.system()
