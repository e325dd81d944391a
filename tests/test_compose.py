"""The server that `examples/compose.yaml` describes: it starts, as it is described."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.servers.valkey import running_valkey

pytestmark = pytest.mark.slow

_FILE = Path(__file__).parent.parent / "examples" / "compose.yaml"

_MEBIBYTE = 2**20

_PATIENCE_SECONDS = 30.0


def _commented_out(line: str) -> bool:
    return line.lstrip().startswith("#")


def _options() -> dict[str, str]:
    """What the service's command sets; read by hand, for want of a YAML reader."""
    text = _FILE.read_text(encoding="utf-8")
    _, _, after = text.partition("    command:\n")
    words = []
    for line in after.splitlines():
        if _commented_out(line):
            continue
        if not line.startswith("      - "):
            break
        word = line.removeprefix("      - ").strip()
        words.append(json.loads(word) if word.startswith('"') else word)
    assert words[0] == "valkey-server"
    return dict(zip(words[1::2], words[2::2], strict=True))


def _health_check() -> str:
    """What a shell runs to see how the server is."""
    text = _FILE.read_text(encoding="utf-8")
    found = re.search(r"^ +test: (\[.*\])$", text, re.MULTILINE)
    assert found is not None
    kind, command = json.loads(found.group(1))
    assert kind == "CMD-SHELL"
    assert isinstance(command, str)
    return command


def test_server_starts_with_the_options_of_the_file() -> None:
    options = _options()
    megabytes = options["--maxmemory"].removesuffix("mb")
    expected = {
        "maxmemory": str(int(megabytes) * _MEBIBYTE),
        "maxmemory-policy": options["--maxmemory-policy"],
        "appendonly": options["--appendonly"],
        "appendfsync": options["--appendfsync"],
        "save": "",
    }
    # The very words of the file: `running_valkey` puts the hyphens back.
    config = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in options.items()
    }

    with running_valkey(**config) as server:
        found = {name: server.ask("CONFIG", "GET", name) for name in expected}

    assert found == {name: [name, value] for name, value in expected.items()}
    assert expected["maxmemory-policy"] == "allkeys-lru"
    assert expected["appendonly"] == "yes"


@pytest.mark.parametrize(
    ("answer", "is_healthy"),
    [
        pytest.param("PONG", True, id="the server is there"),
        pytest.param(
            "LOADING Valkey is loading the dataset in memory", False, id="it is loading"
        ),
        pytest.param("NOAUTH Authentication required.", False, id="no password"),
        pytest.param("", False, id="no answer"),
    ],
)
def test_health_check_takes_nothing_but_pong_for_health(
    tmp_path: Path, answer: str, *, is_healthy: bool
) -> None:
    """The client of the server ends with status 0 whatever it was answered."""
    client = tmp_path / "valkey-cli"
    client.write_text(f"#!/bin/sh\necho '{answer}'\n", encoding="utf-8")
    client.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    done = subprocess.run(  # noqa: S603 (what the file says, with our own client)
        ["/bin/sh", "-c", _health_check()],
        env={**os.environ, "PATH": path},
        timeout=_PATIENCE_SECONDS,
        check=False,
    )

    assert (done.returncode == 0) is is_healthy
