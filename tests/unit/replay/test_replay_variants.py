"""Variants: what their words mean, and that what was recorded comes back when nothing is changed."""

from pathlib import Path

import pytest

from headrace.replay.core.history import HistoryError
from headrace.replay.core.play import rising
from headrace.replay.core.played import PlayedTick
from headrace.replay.core.variant import RECORDED, parse_variants
from headrace.replay.runs.variants import Job, Ran, measured_in, recorded_settings, run_variants
from headrace.replay.sources.folder import HistoryFolder
from headrace.schemas.errors import InvalidInputError
from headrace.solver.core.policies import policy_names
from headrace.solver.core.problem import Problem
from headrace.solver.settings import SolverSettings
from replay_history import SETTINGS, recorded_run
from solver_ticks import snapshot_of, stamp

BASE = SolverSettings(move_price_ms=12.0)
NEVER = Problem((), (), {}, {})


def test_a_variant_is_a_policy_with_the_recorded_settings_under_its_own() -> None:
    lp, gentle, named = parse_variants(
        ("lp", "proportional:k=0.05", "calm=pid:integral=0.01,move_price_ms=5"), ("solver.stay_within=0",), BASE
    )
    assert (lp.name, lp.settings.policy, lp.settings.move_price_ms) == ("lp", "lp", 12.0)
    assert (gentle.settings.policy, gentle.settings.proportional_gain) == ("proportional", 0.05)
    assert (named.name, named.settings.pid_integral, named.settings.move_price_ms) == ("calm", 0.01, 5.0)
    assert {variant.settings.stay_within for variant in (lp, gentle, named)} == {0.0}


def test_recorded_is_the_recorded_policy_whatever_it_was() -> None:
    (variant,) = parse_variants((RECORDED,), (), SolverSettings(policy="nearest"))
    assert variant.settings.policy == "nearest"


def test_everything_that_is_wrong_with_variants_is_told_at_once_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_variants(("proportionl", "lp:move_prize_ms=3", "lp:segments=1", "lp:5", "lp", "lp"), ("period=1",), BASE)
    told = "\n".join(caught.value.problems)
    for part in (
        "policy is 'proportionl'",
        "did you mean 'move_price_ms'",
        "segments is 1; at least 2",
        "'5' is not NAME=VALUE",
        "two variants are called 'lp'",
        "--set is 'period=1'; expected solver.NAME=VALUE",
    ):
        assert part in told


def run(tmp_path: Path, *policies: str, processes: int = 1, out: str = "out") -> list[Ran]:
    folder = tmp_path / "h"
    if not folder.exists():
        recorded_run(8).write(folder)
    history = HistoryFolder(folder)
    base = recorded_settings(history)
    assert base == SETTINGS
    measured = measured_in(history)
    jobs = [Job(folder, RECORDED, None, base, tmp_path / out, measured)]
    jobs += [Job(folder, v.name, v, base, tmp_path / out, measured) for v in parse_variants(policies, (), base)]
    return run_variants(jobs, processes, lambda _: None, lambda: False)


def test_the_recorded_policy_and_settings_give_the_recorded_weights_and_others_do_not(tmp_path: Path) -> None:
    recorded, again, other = run(tmp_path, "lp", "nearest")
    assert (recorded.ticks, recorded.same) == (8, 8)
    assert (again.digest, again.same) == (recorded.digest, 8)
    assert other.digest != recorded.digest
    assert other.configuration["policy"] == "nearest"


def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    alone = run(tmp_path, "proportional:k=0.2")
    beside = run(tmp_path, "proportional:k=0.2", processes=2, out="beside")
    assert [(ran.name, ran.ticks, ran.digest) for ran in alone] == [(r.name, r.ticks, r.digest) for r in beside]
    for ran in alone:
        for name in ("result.json", "snapshots.avro"):
            folder = ran.name.replace(":", "_")
            one, other = (tmp_path / out / folder / name for out in ("out", "beside"))
            assert one.exists()
            # A container ends each block with a marker of its own, drawn anew for each file.
            assert name.endswith("avro") or one.read_bytes() == other.read_bytes()


def test_every_policy_runs_over_a_history(tmp_path: Path) -> None:
    ran = run(tmp_path, *policy_names())
    assert [each.ticks for each in ran] == [8] * (1 + len(policy_names()))
    assert all(each.score is not None and each.complete for each in ran)


def test_a_period_that_history_cannot_serve_is_refused_and_a_longer_one_takes_the_first_tick_of_each(
    tmp_path: Path,
) -> None:
    with pytest.raises(HistoryError, match=r"period_ms is 500, below the 1000 ms .* --from-signals"):
        run(tmp_path, "lp:period_ms=500")
    (_, slow) = run(tmp_path, "lp:period_ms=2000", out="slow")
    assert slow.ticks == 4


def test_a_run_that_is_stopped_keeps_what_it_has_and_says_that_it_is_not_all(tmp_path: Path) -> None:
    folder = recorded_run(6).write(tmp_path / "h")
    asked = iter([False, False, False, False, True])
    history = HistoryFolder(folder)
    job = Job(folder, RECORDED, None, SETTINGS, tmp_path / "out", measured_in(history))
    (ran,) = run_variants([job], 1, lambda _: None, lambda: next(asked))
    assert (ran.complete, ran.ticks) == (False, 3)
    assert ran.score is not None
    assert '"complete": false' in (tmp_path / "out" / RECORDED / "result.json").read_text()


def test_of_two_ticks_of_one_time_the_later_counts_and_none_goes_back() -> None:
    def tick(now_ms: int, version: int) -> PlayedTick:
        snapshot, _ = snapshot_of({"A|m|default": {"e1": 1_000_000}}, stamp(1, version))
        return PlayedTick(now_ms, NEVER, snapshot, None)

    ticks = [tick(10, 1), tick(20, 2), tick(20, 3), tick(15, 4), tick(30, 5)]
    assert [each.snapshot.commit.version for each in rising(ticks)] == [1, 3, 5]
