"""Say which AI crawlers could fetch some pages on a day, and what for.

Asks responses that somebody archived, without a network.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial

from robotsgate import ArchivedResponse, RobotsArchive

# --- The archive ------------------------------------------------------------------

AI_CRAWLERS = ("GPTBot", "ClaudeBot", "CCBot", "Google-Extended")


def archive_of(day: date) -> RobotsArchive:
    """What was archived by the end of `day`, in UTC."""
    midnight = datetime.combine(day + timedelta(days=1), datetime.min.time(), UTC)
    return RobotsArchive(partial(last_capture, before=midnight.timestamp()))


def last_capture(origin: str, *, before: float) -> ArchivedResponse | None:
    """The last response of `origin` that was received `before` this epoch second."""
    responses = reversed(CAPTURES.get(origin, []))
    return next((one for one in responses if (one.fetched_at or 0) < before), None)


def report(archive: RobotsArchive, url: str) -> str:
    """Who could fetch `url`, and whether to train a model on it."""
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


# --- What it has ------------------------------------------------------------------


def captured(day: str, status: int, body: bytes = b"") -> ArchivedResponse:
    """A response that was received on a day such as "2024-03-01", at noon."""
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
# By origin, the oldest first.
CAPTURES = {
    "https://poems.example": [
        captured("2023-05-01", 404),
        captured("2023-11-20", 200, CLOSED),
        captured("2024-02-02", 503),
    ],
    "https://shop.example": [captured("2023-08-08", 200, b"User-agent: *\nAllow: /")],
}


def main() -> None:
    """Ask about the same pages on three days."""
    for day in (date(2023, 6, 1), date(2023, 12, 1), date(2024, 3, 1)):
        archive = archive_of(day)
        for url in ("https://poems.example/rain", "https://shop.example/shoes"):
            print(f"{day} {url}: {report(archive, url)}")


if __name__ == "__main__":
    main()
