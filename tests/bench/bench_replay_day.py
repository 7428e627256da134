"""A long history of a large fleet replayed whole: files, columns, windows, states, problem, program, score.

    python tests/bench/bench_replay_day.py [--engines 1000] [--minutes 30] [--whole-day]

A signal a second of each engine, demand a second of each route by ServeGen's rates, a tick every five seconds. Each
part is one process, as of `headrace replay run --from-signals`, one variant. Bar: 50,000 engine periods a second and
core up to the states; a day on two cores in 15 minutes, so 104 ms of processor a tick; below 1 GB, however long.
Without --whole-day a day is reckoned from the minutes that were played; two lengths show that memory does not grow.
"""

import argparse
import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from long_history import TABLE, write_history

from headrace.replay.core.columnar.engines import ColumnarEngines
from headrace.replay.core.columnar.tail import Tail
from headrace.replay.core.variant import parse_variants
from headrace.replay.runs.pool import Desk
from headrace.replay.runs.variants import Job, run_variant
from headrace.replay.score.measured import NOTHING_MEASURED
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.topics import SIGNALS_ENGINE
from headrace.solver.heap import seldom_collected
from headrace.solver.settings import SolverSettings
from headrace.streams.settings import StreamsSettings

TICK_MS = 5_000
DAY_MINUTES = 24 * 60
BAR_RATE, BAR_MINUTES, BAR_MB, CORES = 50_000, 15, 1_000, 2


def states(folder: Path) -> int:
    """Fold every engine signal of a folder, and tell the states at each tick; give how many ticks."""
    history = HistoryFolder(folder)
    tail = Tail([history.read_batches(place) for place in history.places(SIGNALS_ENGINE)])
    fold = ColumnarEngines(TABLE[SIGNALS_ENGINE], StreamsSettings())
    ticks = range(history.span.from_ms + TICK_MS, history.span.to_ms + TICK_MS, TICK_MS)
    for at_ms in ticks:
        batch = tail.until(at_ms, included=True)
        if batch is not None:
            fold.take_batch(batch, None)
        fold.told()
    return len(ticks)


def whole(folder: Path) -> int:
    """Play and score the program over a folder; give how many ticks."""
    base = SolverSettings()
    variant = parse_variants(["lp"], [f"solver.period_ms={TICK_MS}"], base)[0]
    with TemporaryDirectory() as out:
        job = Job(folder, "lp", variant, base, Path(out), NOTHING_MEASURED, streams=StreamsSettings())
        return run_variant(job, Desk(lambda _: None, lambda: False)).ticks


def measured(work: Callable[[Path], int], folder: Path) -> tuple[int, float, int]:
    """Give ticks, processor seconds and the peak of memory, MB."""
    begun = time.process_time()
    with seldom_collected():
        ticks = work(folder)
    return ticks, time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--engines", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--whole-day", action="store_true")
    options = parser.parse_args()
    minutes = DAY_MINUTES if options.whole_day else options.minutes
    print(f"{options.engines} engines, a signal a second; a tick every {TICK_MS // 1000} s")
    print(f"{'':24}{'minutes':>8}{'ticks':>8}{'CPU s':>9}{'ms/tick':>9}{'periods/s':>11}{'a day, min':>12}{'MB':>6}")
    for length in sorted({max(1, minutes // 3), minutes}):
        with TemporaryDirectory() as folder:
            write_history(Path(folder), options.engines, 60 * length)
            for name, work in (("files to states", states), ("files to score", whole)):
                with get_context("spawn").Pool(1) as pool:
                    ticks, seconds, peak = pool.apply(measured, (work, Path(folder)))
                rate, day = options.engines * 60 * length / seconds, seconds * DAY_MINUTES / length / 60 / CORES
                row = f"{name:24}{length:>8}{ticks:>8}{seconds:>9.1f}{1000 * seconds / ticks:>9.1f}{rate:>11,.0f}"
                print(f"{row}{day:>12.1f}{peak:>6}", flush=True)
    print(f"{'bar':24}{'':>8}{'':>8}{'':>9}{'':>9}{BAR_RATE:>11,}{BAR_MINUTES:>12}{BAR_MB:>6}")
    print(f"'a day' is processor time over {CORES} cores, as of variants beside each other: of one alone, twice that")


if __name__ == "__main__":
    main()
