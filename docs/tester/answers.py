"""Answers the queries of the tester page inside the browser."""

from __future__ import annotations

import json
from itertools import product

from robotsgate.cli.tester._answers import (
    BadRequestError,
    Query,
    answers_in,
    in_each_dialect,
    shown_file,
)


def answer(text: str) -> str:
    """Answer a JSON query with JSON, like `robotsgate serve`."""
    try:
        query = Query.of(json.loads(text))
    except BadRequestError as error:
        return json.dumps({"error": str(error)})
    files = in_each_dialect(query.text or "")
    content = shown_file(files[0])
    content["answers"] = [
        answer
        for path, agent in product(query.paths, query.agents)
        for answer in answers_in(files, agent, path)
    ]
    return json.dumps(content)
