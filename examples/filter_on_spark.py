"""Use Spark to find out which URLs in a made-up data set a crawler could fetch.

Needs Java 17 or 21; pip install . 'pyspark>=4' 'pandas<3' pyarrow
"""

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import isnull

from robotsgate import ArchivedResponse, InvalidURLError, Origin, RobotsArchive

AGENT = "ExampleBot"


def with_answers(urls: DataFrame, responses: DataFrame) -> DataFrame:
    """Each `url`, and whether it is `allowed` (null if nothing is archived)."""
    with_origins = urls.mapInArrow(add_origins, "url string, origin string")
    return (
        responses.unionByName(with_origins, allowMissingColumns=True)
        .repartition("origin")
        .sortWithinPartitions("origin", isnull("status"), "fetched_at")
        .mapInArrow(answer, "url string, allowed boolean")
    )


def add_origins(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add the origin of each URL."""
    for batch in batches:
        origins = pa.array(map(origin_of, batch["url"].to_pylist()), pa.string())
        yield pa.record_batch({"url": batch["url"], "origin": origins})


def origin_of(url: str) -> str | None:
    """The origin of `url`, which is the key of its response, or `None`."""
    try:
        return str(Origin.from_url(url))
    except InvalidURLError:
        return None


def answer(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers for sorted rows: an origin's responses first, then its URLs."""
    responses: dict[str, ArchivedResponse] = {}
    archive = RobotsArchive(responses, max_origins=1)
    for batch in batches:
        is_url = pc.is_null(batch["status"])
        for row in batch.filter(pc.invert(is_url)).to_pylist():
            response = ArchivedResponse(row["status"], body=row["body"])
            responses[row["origin"]] = response
        urls = batch.filter(is_url)["url"]
        allowed = archive.can_fetch_many(AGENT, urls.to_pylist())
        yield pa.record_batch({"url": urls, "allowed": pa.array(allowed, pa.bool_())})
        for origin in [*responses][:-1]:  # the next batch may need the last one
            del responses[origin]


def main(count: int = 100_000) -> None:
    """Count the answers for URLs on 1,000 origins, 900 of which are archived."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    local = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
    spark = SparkSession.builder.master("local[2,3]").config(map=local).getOrCreate()
    responses = spark.range(900).selectExpr(
        "concat('https://site', id, '.example') AS origin",
        "1700000000.0D AS fetched_at",
        "if(id % 10 = 0, 404, 200) AS status",
        "cast('User-agent: *\\nDisallow: /drafts/' AS binary) AS body",
    )
    path = "if(id % 3 = 0, '/drafts/', '/poems/')"
    url = f"concat('https://site', id % 1000, '.example', {path}, id) AS url"
    answers = with_answers(spark.range(count).selectExpr(url), responses)
    answers.groupBy("allowed").count().orderBy("allowed").show()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
