"""Find out which AI crawlers could fetch some pages on a given day, and for what use.

Uses archived responses, without a network.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from functools import partial

from robotsgate import ArchivedResponse, RobotsArchive
from robotsgate.archive import last_capture

# --- The archive ------------------------------------------------------------------

AI_CRAWLERS = ("GPTBot", "ClaudeBot", "CCBot", "Google-Extended")


def archive_of(day: date) -> RobotsArchive:
    """The archive as of the end of `day`, in UTC."""
    end = datetime.combine(day, time.max, UTC)
    return RobotsArchive(partial(find, as_of=end.timestamp()))


def find(origin: str, *, as_of: float) -> ArchivedResponse | None:
    """The capture of `origin` that applies at `as_of`."""
    return last_capture(CAPTURES.get(origin, []), as_of=as_of)


def report(archive: RobotsArchive, url: str) -> str:
    """Who could fetch `url`, and whether models could be trained on it."""
    verdict = archive.check("*", url)
    refused = archive.refused_agents(AI_CRAWLERS, url)
    usages = archive.usage_preferences("*", url)
    if verdict is None or refused is None or usages is None:
        return "nothing archived"
    train_ai = usages.content_usage["train-ai"].preference
    ai_train = usages.content_signal["ai-train"].preference
    return (
        f"{verdict.access.value}, refused {list(refused)},"
        f" train-ai {train_ai.value}, ai-train {ai_train.value}"
    )


# --- The captures -----------------------------------------------------------------


def captured(day: str, status: int, body: bytes = b"") -> ArchivedResponse:
    """A response received at noon on `day`, such as "2024-03-01"."""
    noon = datetime.fromisoformat(f"{day}T12:00+00:00")
    return ArchivedResponse(status, body=body, fetched_at=noon.timestamp())


CLOSED = b"""\
User-agent: *
Disallow: /drafts
Content-Signal: search=yes, ai-train=no
Content-Usage: train-ai=n

User-agent: GPTBot
User-agent: CCBot
Disallow: /
"""
# Keyed by origin.
CAPTURES = {
    "https://poems.example": [
        captured("2023-05-01", 404),
        captured("2023-11-20", 200, CLOSED),
        captured("2024-02-02", 503),
    ],
    "https://shop.example": [captured("2023-08-08", 200, b"User-agent: *\nAllow: /")],
}


def main() -> None:
    """Report on the same pages for three different days."""
    for day in (date(2023, 6, 1), date(2023, 12, 1), date(2024, 3, 1)):
        archive = archive_of(day)
        for url in ("https://poems.example/rain", "https://shop.example/shoes"):
            print(f"{day} {url}: {report(archive, url)}")


if __name__ == "__main__":
    main()
