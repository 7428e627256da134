"""A long history of a large fleet replayed whole: files, columns, windows, states, problem, program, score, report.

    python tests/bench/bench_replay_day.py [--engines 1000] [--minutes 30] [--whole-day] [--history FOLDER]
        [--outcomes engine|gateway]

A signal a second of each engine, demand a second of each route by ServeGen's rates, a tick every five seconds. `states`
is one process up to the states of each tick; `replay run` is the command itself, one variant: the wall clock, and the
processor time of all of its processes. Bar: 50,000 engine periods a second and core up to the states; a day on two
cores in 15 minutes; below 1 GB, all processes together, however long. Without --whole-day a day is reckoned from the
minutes that were played: by the wall clock, by processor time over cores, and by that of the busiest process, which is
what the wall clock of a quiet machine comes to; two lengths show that memory does not grow. With --outcomes each period
also says how its requests ended: in the engine's signal, or in one more of a gateway.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread

from long_history import write_history

from headrace.replay.core.history import Finding
from headrace.replay.core.play_signals import instants
from headrace.replay.runs.folding import Folding, fold_signals
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.signals import Vantage
from headrace.solver.heap import seldom_collected
from headrace.streams.settings import StreamsSettings

TICK_MS = 5_000
DAY_MINUTES = 24 * 60
BAR_RATE, BAR_MINUTES, BAR_MB = 50_000, 15, 1_000
LOOK_S = 0.5
COMMAND = (
    *(sys.executable, "-c", "from headrace.infra.cli import main; main()"),
    *("replay", "run", "--from-signals", "--policy", "lp", "--set", f"solver.period_ms={TICK_MS}"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Ticks; seconds by the wall, of processors, and of these the busiest process's; the peak of memory, MB."""

    ticks: int
    wall_s: float
    cpu_s: float
    busiest_s: float
    peak_mb: int


def states(folder: Path) -> Measured:
    """Fold all signals of a folder up to the states of each tick, in this process."""
    ticks, found = instants(HistoryFolder(folder).span, TICK_MS), list[Finding]()
    wall, cpu = time.perf_counter(), time.process_time()
    with seldom_collected():
        for _ in fold_signals(Folding(folder, StreamsSettings(), None, ticks), found):
            pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Measured(len(ticks), wall, cpu, cpu, peak)


def replayed(folder: Path, processes: int) -> Measured:
    """Run the command over a folder."""
    with TemporaryDirectory() as out:
        before, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        words = (*COMMAND, "--dir", str(folder), "--out", out, "--processes", str(processes))
        command = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with command, watched(command.pid) as seen:
            told, errors = command.communicate()
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    if command.returncode:
        raise SystemExit(f"replay run ended with {command.returncode}: {told}{errors}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    busiest_s = max(seen.cpu_s.values(), default=0.0)
    return Measured(int(told.split("lp: ")[1].split()[0]), wall, cpu, busiest_s, seen.peak_mb)


@dataclass(slots=True)
class Seen:
    """What was seen of some processes: the most that they held together, MB, and the processor time of each, s."""

    peak_mb: int = 0
    cpu_s: dict[int, float] = field(default_factory=dict[int, float])


@contextmanager
def watched(pid: int) -> Generator[Seen]:
    """Look at a process and those that it began every `LOOK_S`; sees nothing where /proc is not there."""
    seen, over = Seen(), Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            family = _family(pid)
            seen.peak_mb = max(seen.peak_mb, sum(map(_resident_mb, family)))
            seen.cpu_s |= {each: cpu_s for each in family if (cpu_s := _cpu_s(each)) is not None}

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    yield seen
    over.set()
    watcher.join()


def _family(pid: int) -> list[int]:
    family = [pid]
    for each in family:
        try:
            family += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
        except OSError:
            continue
    return family


def _resident_mb(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
    except (OSError, IndexError):
        return 0


def _cpu_s(pid: int) -> float | None:
    """Give a process's own time and the kernel's for it; None where it is gone."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except (OSError, ValueError):
        return None
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--engines", type=int, default=1000)
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--whole-day", action="store_true")
    parser.add_argument("--history", type=Path, help="a folder that was written before, of this many --minutes")
    parser.add_argument("--outcomes", choices=("engine", "gateway"), help="who tells how requests ended")
    options = parser.parse_args()
    counted = Vantage(options.outcomes.upper()) if options.outcomes else None
    minutes = DAY_MINUTES if options.whole_day else options.minutes
    print(f"{options.engines} engines, a signal a second; a tick every {TICK_MS // 1000} s")
    print(f"{'':26}{'minutes':>8}{'ticks':>7}{'wall s':>8}{'CPU s':>8}{'CPU ms/tick':>12}{'periods/s':>11}", end="")
    print(f"{'a day, min: wall':>18}{'CPU/cores':>11}{'busiest':>9}{'MB':>6}")
    for length in (minutes,) if options.history else sorted({max(1, minutes // 3), minutes}):
        with TemporaryDirectory() as made:
            folder = options.history or Path(made)
            if not options.history:
                write_history(folder, options.engines, 60 * length, counted)
            with get_context("spawn").Pool(1) as pool:
                tell("states, 1 core", options.engines, length, pool.apply(states, (folder,)), 1)
            for cores in (1, 2) if length < DAY_MINUTES else (2,):
                tell(f"replay run, {cores} cores", options.engines, length, replayed(folder, cores), cores)
    print(f"{'bar':26}{'':>8}{'':>7}{'':>8}{'':>8}{'':>12}{BAR_RATE:>11,}{BAR_MINUTES:>18}{'':>11}{'':>9}{BAR_MB:>6}")


def tell(name: str, engines: int, minutes: int, found: Measured, cores: int) -> None:
    days = DAY_MINUTES / minutes / 60
    row = f"{name:26}{minutes:>8}{found.ticks:>7}{found.wall_s:>8.1f}{found.cpu_s:>8.1f}"
    row += f"{1000 * found.cpu_s / found.ticks:>12.1f}{60 * engines * minutes / found.cpu_s:>11,.0f}"
    row += f"{found.wall_s * days:>18.1f}{found.cpu_s / cores * days:>11.1f}{found.busiest_s * days:>9.1f}"
    print(f"{row}{found.peak_mb:>6}", flush=True)


if __name__ == "__main__":
    main()
