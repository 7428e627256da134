"""The one place where the solver looks at a clock; everywhere else time is an argument."""

import time


def wall_clock_ms() -> int:
    """Give the time, ms since the epoch."""
    return time.time_ns() // 1_000_000


def stop_watch_us() -> int:
    """Give microseconds since some start."""
    return time.perf_counter_ns() // 1_000
