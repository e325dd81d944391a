"""Reports metrics and spans for checkers and gates to OpenTelemetry.

Needs only the OpenTelemetry API (extra `otel`); the application chooses the SDK and the
exporters.
"""

from __future__ import annotations

from robotsgate.integrations._wrapping import missing_extra

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise missing_extra("otel") from error

from typing import TYPE_CHECKING, assert_never

from opentelemetry.metrics import Observation
from opentelemetry.trace import Status, StatusCode

from robotsgate import (
    AccessChanged,
    FetchCancelled,
    FetchStarted,
    RobotsTxtFetched,
    RulesChanged,
    StoreFailed,
    __version__,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.metrics import CallbackOptions, CallbackT, MeterProvider
    from opentelemetry.trace import Span, TracerProvider

    from robotsgate import CheckerEvent, PolitenessGate, RobotsChecker

_SCOPE = "robotsgate"


class Telemetry:
    """Metrics and spans for one checker.

    Metrics from the events passed to `record`:

    - `robotsgate.fetch.duration` (histogram, seconds), by access result and failure
    - `robotsgate.fetch.size` (histogram, bytes): the size of the decoded body
    - `robotsgate.access.changes` (counter), by new access result
    - `robotsgate.rules.changes` (counter)
    - `robotsgate.store.failures` (counter), by operation

    Metrics from the checker passed to `observe`:

    - `robotsgate.checks` (counter), by verdict: "allowed", or the reason if disallowed
    - `robotsgate.origins` (gauge): parsed origins in memory

    Metrics from the gate passed to `observe_gate`:

    - `robotsgate.gate.turns` (counter): turns that have started
    - `robotsgate.gate.incidents` (counter): turns after which the gate backed off
    - `robotsgate.gate.waiting` (gauge): callers and fetches waiting for a host

    Each fetch creates a "fetch robots.txt" span inside the span of the lookup that
    started the fetch.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Report to these providers.

        Args:
            tracer_provider: by default, the global tracer provider.
            meter_provider: by default, the global meter provider.
        """
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
        self._meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self._durations = self._meter.create_histogram(
            "robotsgate.fetch.duration", unit="s"
        )
        self._sizes = self._meter.create_histogram("robotsgate.fetch.size", unit="By")
        self._changes = self._meter.create_counter("robotsgate.access.changes")
        self._rules_changes = self._meter.create_counter("robotsgate.rules.changes")
        self._store_failures = self._meter.create_counter("robotsgate.store.failures")
        self._spans: dict[str, Span] = {}  # keyed by origin, at most one fetch each

    def record(self, event: CheckerEvent) -> None:
        """Record `event`; pass this method to a checker as `on_event`."""
        match event:
            case FetchStarted():
                self._spans[event.origin] = self._tracer.start_span(
                    "fetch robots.txt", attributes={"robotsgate.origin": event.origin}
                )
            case RobotsTxtFetched():
                self._record_fetch(event)
            case FetchCancelled():
                span = self._spans.pop(event.origin)
                span.set_status(Status(StatusCode.ERROR, "cancelled"))
                span.end()
            case AccessChanged():
                self._changes.add(1, {"robotsgate.access": event.after.value})
            case RulesChanged():
                self._rules_changes.add(1)
            case StoreFailed():
                self._store_failures.add(
                    1, {"robotsgate.store.operation": event.operation}
                )
            case _:
                assert_never(event)

    def observe(self, checker: RobotsChecker) -> None:
        """Report `checker`'s counters whenever metrics are collected."""

        def checks(_: CallbackOptions) -> Iterator[Observation]:
            stats = checker.stats
            yield Observation(stats.allowed, {"robotsgate.verdict": "allowed"})
            for reason, count in stats.disallowed.items():
                yield Observation(count, {"robotsgate.verdict": reason.value})

        def origins(_: CallbackOptions) -> Iterator[Observation]:
            yield Observation(checker.stats.live_origins)

        self._meter.create_observable_counter("robotsgate.checks", [checks])
        self._meter.create_observable_gauge("robotsgate.origins", [origins])

    def observe_gate(self, gate: PolitenessGate) -> None:
        """Report `gate`'s counters whenever metrics are collected."""

        def stat(name: str) -> CallbackT:
            return lambda _: [Observation(getattr(gate.stats, name))]

        for name in ("turns", "incidents"):
            self._meter.create_observable_counter(
                f"robotsgate.gate.{name}", [stat(name)]
            )
        self._meter.create_observable_gauge(
            "robotsgate.gate.waiting", [stat("waiting")]
        )

    def _record_fetch(self, event: RobotsTxtFetched) -> None:
        attributes = {"robotsgate.access": event.access.value}
        if event.failure is not None:
            attributes["error.type"] = event.failure.value
        self._durations.record(event.elapsed_seconds, attributes)
        self._sizes.record(event.body_bytes, attributes)
        span = self._spans.pop(event.origin)
        span.set_attributes(attributes)
        if event.status is not None:
            span.set_attribute("http.response.status_code", event.status)
        for url, status in event.redirects:
            span.add_event(
                "redirect", {"url.full": url, "http.response.status_code": status}
            )
        if event.error is not None:
            span.set_status(Status(StatusCode.ERROR, event.error))
        span.end()
