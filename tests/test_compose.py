"""The server in `examples/compose.yaml` starts with its options and health check."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.servers.valkey import running_valkey

pytestmark = pytest.mark.slow

_FILE = Path(__file__).parent.parent / "examples" / "compose.yaml"
_SERVICE = yaml.safe_load(_FILE.read_text(encoding="utf-8"))["services"]["robots"]

_MEBIBYTE = 2**20

_TIMEOUT_SECONDS = 30.0


def _options() -> dict[str, str]:
    program, *arguments = _SERVICE["command"]
    assert program == "valkey-server"
    return dict(zip(arguments[::2], arguments[1::2], strict=True))


def _health_check() -> str:
    """The shell command that checks the server."""
    kind, command = _SERVICE["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    assert isinstance(command, str)
    return command


def test_server_starts_with_the_options_in_the_file() -> None:
    options = _options()
    megabytes = options["--maxmemory"].removesuffix("mb")
    expected = {
        "maxmemory": str(int(megabytes) * _MEBIBYTE),
        "maxmemory-policy": options["--maxmemory-policy"],
        "appendonly": options["--appendonly"],
        "appendfsync": options["--appendfsync"],
        "save": "",
    }
    # `running_valkey` turns the underscores back into hyphens.
    config = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in options.items()
    }

    with running_valkey(**config) as server:
        actual = {name: server.ask("CONFIG", "GET", name) for name in expected}

    assert actual == {name: [name, value] for name, value in expected.items()}
    assert expected["maxmemory-policy"] == "allkeys-lru"
    assert expected["appendonly"] == "yes"


@pytest.mark.parametrize(
    ("answer", "is_healthy"),
    [
        pytest.param("PONG", True, id="ready"),
        pytest.param(
            "LOADING Valkey is loading the dataset in memory", False, id="loading"
        ),
        pytest.param("NOAUTH Authentication required.", False, id="no password"),
        pytest.param("", False, id="no answer"),
    ],
)
def test_health_check_accepts_only_pong(
    tmp_path: Path, answer: str, *, is_healthy: bool
) -> None:
    """The real client exits with status 0 whatever the server answers."""
    client = tmp_path / "valkey-cli"
    client.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    client.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    process = subprocess.run(  # noqa: S603 (the file's command, with our own client)
        ["/bin/sh", "-c", _health_check()],
        env={**os.environ, "PATH": path},
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )

    assert (process.returncode == 0) is is_healthy
