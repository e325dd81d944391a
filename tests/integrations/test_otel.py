"""A checker's metrics and spans, as collected by the OpenTelemetry SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from robotsgate import (
    AccessChanged,
    AccessResult,
    FetchCancelled,
    FetchStarted,
    PolitenessGate,
    RobotsChecker,
    RulesChanged,
)
from robotsgate.integrations.otel import Telemetry
from robotsgate.testing import FakeSite
from tests.checking.builders import FailingStore

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

AGENT = "ExampleBot"


class Collected:
    """A `Telemetry`, and what it has reported."""

    def __init__(self) -> None:
        self.reader = InMemoryMetricReader()
        self.exporter = InMemorySpanExporter()
        tracer_provider = TracerProvider()
        tracer_provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.telemetry = Telemetry(
            tracer_provider=tracer_provider,
            meter_provider=MeterProvider([self.reader]),
        )

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    @property
    def points(self) -> dict[str, list[Any]]:
        """The data points of each metric."""
        data = self.reader.get_metrics_data()
        assert data is not None
        scope = data.resource_metrics[0].scope_metrics[0]
        return {metric.name: list(metric.data.data_points) for metric in scope.metrics}


@pytest.mark.anyio
async def test_checks_and_fetches_are_counted() -> None:
    collected, site = Collected(), FakeSite()
    site.serve("https://a.example", "User-agent: *\nDisallow: /x")
    site.fail("https://b.example", httpx.ConnectError("refused"))
    async with RobotsChecker(
        client=site,
        store=FailingStore("get"),
        on_event=collected.telemetry.record,
    ) as checker:
        collected.telemetry.observe(checker)

        for url in ("a.example/", "a.example/x", "b.example/"):
            await checker.can_fetch(AGENT, f"https://{url}")
        points = collected.points

    assert {
        point.attributes["robotsgate.verdict"]: point.value
        for point in points["robotsgate.checks"]
    } == {"allowed": 1, "disallowed-by-rule": 1, "unreachable": 1}
    assert points["robotsgate.origins"][0].value == 2
    assert [point.attributes for point in points["robotsgate.fetch.duration"]] == [
        {"robotsgate.access": "successful"},
        {"robotsgate.access": "unreachable", "error.type": "connect"},
    ]
    assert [point.sum for point in points["robotsgate.fetch.size"]] == [26, 0]
    (failures,) = points["robotsgate.store.failures"]
    assert failures.attributes == {"robotsgate.store.operation": "get"}


@pytest.mark.anyio
async def test_gate_turns_are_counted() -> None:
    collected = Collected()
    checker = RobotsChecker(client=FakeSite())
    async with checker, PolitenessGate(checker, AGENT, default_delay=0) as gate:
        collected.telemetry.observe_gate(gate)

        async with gate.turn("https://a.example/") as turn:
            turn.report(status=429)
        points = collected.points

    assert {name: point.value for name, (point,) in points.items()} == {
        "robotsgate.gate.turns": 1,
        "robotsgate.gate.incidents": 1,
        "robotsgate.gate.waiting": 0,
    }


@pytest.mark.anyio
async def test_fetch_is_a_span_with_its_redirects_and_error() -> None:
    collected, site = Collected(), FakeSite()
    to_dead = {"Location": "https://dead.example/robots.txt"}
    site.serve("https://a.example", status=301, headers=to_dead)
    site.fail("https://dead.example", httpx.ConnectError("refused"))
    async with RobotsChecker(
        client=site, on_event=collected.telemetry.record
    ) as checker:
        await checker.can_fetch(AGENT, "https://a.example/")

    (span,) = collected.spans

    assert span.name == "fetch robots.txt"
    assert span.attributes == {
        "robotsgate.origin": "https://a.example",
        "robotsgate.access": "unreachable",
        "error.type": "connect",
    }
    assert [event.attributes for event in span.events] == [
        {"url.full": to_dead["Location"], "http.response.status_code": 301}
    ]
    assert span.status.status_code is StatusCode.ERROR


def test_span_of_a_cancelled_fetch_ends() -> None:
    collected = Collected()
    collected.telemetry.record(FetchStarted(origin="https://a.example"))

    collected.telemetry.record(
        FetchCancelled(origin="https://a.example", elapsed_seconds=1.0)
    )

    (span,) = collected.spans
    assert span.status.description == "cancelled"


def test_rules_change_is_counted() -> None:
    collected = Collected()

    collected.telemetry.record(
        RulesChanged(origin="https://a.example", before={}, after={"*": "1f"})
    )

    (change,) = collected.points["robotsgate.rules.changes"]
    assert change.value == 1


def test_access_change_is_counted() -> None:
    collected = Collected()

    collected.telemetry.record(
        AccessChanged(
            origin="https://a.example",
            before=AccessResult.SUCCESSFUL,
            after=AccessResult.UNREACHABLE,
        )
    )

    (change,) = collected.points["robotsgate.access.changes"]
    assert change.attributes == {"robotsgate.access": "unreachable"}
