"""The store of `docs/how-to/write-a-store.md`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from own_store import FolderStore

from tests.stores.contracts import StoreContract

if TYPE_CHECKING:
    from collections.abc import Callable


class TestFolderStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], FolderStore]:
        return lambda: FolderStore(Path(tempfile.mkdtemp(dir=tmp_path)))

    @pytest.fixture
    def make_shared(self, tmp_path: Path) -> Callable[[], FolderStore]:
        return lambda: FolderStore(tmp_path)
