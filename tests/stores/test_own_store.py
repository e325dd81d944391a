"""The store of `docs/how-to/write-a-store.md`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.stores.contracts import StoreContract

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.stores import Store

FolderStore = pytest.importorskip(
    "own_store", reason="Windows has no fcntl"
).FolderStore


class TestFolderStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: FolderStore(Path(tempfile.mkdtemp(dir=tmp_path)))

    @pytest.fixture
    def make_shared(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: FolderStore(tmp_path)
