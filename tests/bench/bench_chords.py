"""What too few chords cost: true-cost regret on the measured curves, utilisation 0.4 to 0.92, over random fleets.

    python tests/bench/bench_chords.py [--fleets 100]

    as placed   chords by thirds, never cut (`refine_above` 1)
    cut         chords by thirds, halved where the answer is until the gap is certified (the default)
    anchored    with `anchors` 4 as well, at the third tick

Regret is the true cost over that on 64 chords, anchored and cut to 0.002 %; the certified gap needs no such yardstick.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from measured_fleets import best_cost, measured_fleet, measured_profiles, true_cost

BARS = {("8", "cut"): 0.01, ("8", "anchored"): 0.002}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fleets", type=int, default=100)
    fleets = [measured_fleet(seed, measured_profiles()) for seed in range(parser.parse_args().fleets)]
    best = [best_cost(fleet) for fleet in fleets]
    print(f"{'chords':8} {'':10} {'worst':>9} {'p90':>9} {'mean':>9} {'certified, worst':>18}")
    for segments in (8, 16, 24):
        for how, anchors, refine in (("as placed", 0, 1.0), ("cut", 0, None), ("anchored", 4, None)):
            found = [true_cost(fleet, segments, anchors, refine) for fleet in fleets]
            regret = np.array([cost / least - 1.0 for (cost, _), least in zip(found, best, strict=True)])
            bar = BARS.get((str(segments), how))
            verdict = "" if bar is None else f"   bar {bar:.1%}: {'met' if regret.max() <= bar else 'MISSED'}"
            worst, p90, mean = float(regret.max()), float(np.quantile(regret, 0.9)), float(regret.mean())
            certified = max(gap for _, gap in found)
            print(f"{segments:<8} {how:10} {worst:9.3%} {p90:9.3%} {mean:9.4%} {certified:18.3%}{verdict}", flush=True)


if __name__ == "__main__":
    main()
