from __future__ import annotations

import time

from robotsgate import RobotsChecker, SystemClock


def test_system_clock_tells_the_seconds_since_the_epoch() -> None:
    before = time.time_ns() / 1e9

    now = SystemClock().now()

    after = time.time_ns() / 1e9
    # The two clocks of the system may differ by their resolution.
    assert before - 0.1 <= now <= after + 0.1


def test_system_clock_tells_fractions_of_seconds() -> None:
    clock = SystemClock()

    moments = {clock.now() % 1 for _ in range(100)}

    assert isinstance(clock.now(), float)
    assert moments != {0.0}


def test_anything_with_now_is_a_clock() -> None:
    class StoppedClock:
        def now(self) -> float:
            return 1.5

    checker = RobotsChecker(clock=StoppedClock())

    assert checker.peek("ExampleBot", "https://example.com/") is None
