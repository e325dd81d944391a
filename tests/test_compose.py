"""The server in `examples/compose.yaml` starts with its options and health check."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.servers.valkey import running_valkey
from tests.systems import need_posix
from tests.tables import cases

_FILE = Path(__file__).parent.parent / "examples" / "compose.yaml"
_SERVICE = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["services"]["robots"]


@pytest.mark.slow
def test_server_starts_with_the_options_in_the_file() -> None:
    program, *arguments = _SERVICE["command"]
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    # `running_valkey` turns the underscores back into hyphens.
    config = {name[2:].replace("-", "_"): value for name, value in options.items()}

    with running_valkey(**config) as server:
        names = ("maxmemory", "maxmemory-policy", "appendonly")
        actual = [server.ask("CONFIG", "GET", name) for name in names]

    mebibytes = int(config["maxmemory"].removesuffix("mb"))
    assert program == "valkey-server"
    assert actual == [
        ["maxmemory", str(mebibytes * 2**20)],
        ["maxmemory-policy", "allkeys-lru"],
        ["appendonly", "yes"],
    ]


@cases("answer is_healthy", {
    "ready": ("PONG", True),
    "loading": ("LOADING Valkey is loading the dataset in memory", False),
    "no answer": ("", False),
})  # fmt: skip
def test_health_check_accepts_only_pong(
    tmp_path: Path, answer: str, *, is_healthy: bool
) -> None:
    """The real client exits with status 0 whatever the server answers."""
    need_posix()
    kind, command = _SERVICE["healthcheck"]["test"]
    client = tmp_path / "valkey-cli"
    client.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    client.chmod(0o755)

    status = subprocess.call(  # noqa: S603 (the file's command, with our own client)
        ["/bin/sh", "-c", command],
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        timeout=30,
    )

    assert kind == "CMD-SHELL"
    assert (status == 0) is is_healthy
