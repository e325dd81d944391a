"""Answers the queries of the tester page inside the browser."""

from __future__ import annotations

import json

from robotsgate.cli._explain import BadRequestError, Query, about_text


def answer(text: str) -> str:
    """Answer a JSON query with JSON, like `robotsgate serve`."""
    try:
        return json.dumps(about_text(Query.of(json.loads(text))))
    except BadRequestError as error:
        return json.dumps({"error": str(error)})
