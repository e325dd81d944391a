"""Makes the README's links absolute and sets the project URLs when a package is built.

Both start with `address` in pyproject.toml, the address of the repository. While there
is none, the description has no links into the repository, and there are no URLs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"\[([^]]+)\]\((?!https:)([^)]+)\)")


class Links(MetadataHookInterface):
    """Sets the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Link to the files of this version."""
        link, urls = r"\1", {}
        if address := self.config["address"]:
            files = f"{address}/blob/v{metadata['version']}"
            link = rf"[\1]({files}/\2)"
            urls = {
                "Repository": address,
                "Documentation": f"{files}/docs/index.md",
                "Changelog": f"{files}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": _RELATIVE_LINK.sub(link, readme),
        }
        metadata["urls"] = urls
