"""Measured latency against load, up to the capacity wall: what one accelerator did, never a formula.

    latency(load) = ttft(load) + output_tokens x tbot(load)       load = served rps / capacity rps, 0..1
    in service    = load x capacity x latency(load)               Little's law: the same curve against concurrency

Open loop (H100): the wall is the median of what was completed in the stages where less than 97 % of what was asked for
was served. TTFT at the wall is extended from the last two stages below it, since the measured one there is a queue of
60 seconds and the simulation has its own queue. TBOT at the wall is measured. Closed loop (silicon): the wall is the
highest rate that Little's law gives; points beyond that concurrency only queue, and are left out.

TBOT is (e2e - ttft) / output tokens; the published `tpot` counts two chunks per token (data/SOURCES.md).
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from headrace.infra.fleet.tables import rows
from headrace.schemas.errors import InvalidInputError

SERVED_BELOW_THE_WALL = 0.97


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """Latencies at rising loads (0 first, 1 last, the wall), none of them falling, and where they were measured."""

    name: str
    hardware: str
    model: str
    source: str
    capacity_rps: float
    input_tokens: float
    output_tokens: float
    loads: tuple[float, ...]
    ttft_s: tuple[float, ...]
    tbot_s: tuple[float, ...]

    def latency_s(self, i: int) -> float:
        """Give the mean request's time in the engine at knot i, without a queue."""
        return self.ttft_s[i] + self.output_tokens * self.tbot_s[i]

    def in_service(self) -> tuple[float, ...]:
        """Give the mean number of requests in service at each knot, one accelerator, by Little's law."""
        return tuple(load * self.capacity_rps * self.latency_s(i) for i, load in enumerate(self.loads))


@dataclass(frozen=True, slots=True)
class ReplicaCurve:
    """The curve as one replica of `capacity_rps` follows it: against its requests in service, up to its `slots`.

    slots = capacity x latency at the wall, rounded: with all of them busy it serves its capacity (within half a slot).
    """

    capacity_rps: float
    slots: int
    output_tokens: float
    in_service: tuple[float, ...]
    ttft_s: tuple[float, ...]
    tbot_s: tuple[float, ...]

    def at(self, in_service: float) -> tuple[float, float]:
        """Give (TTFT, TBOT) in seconds with that many requests in service; held at the wall's beyond the slots."""
        knots = self.in_service
        if in_service >= knots[-1]:
            return self.ttft_s[-1], self.tbot_s[-1]
        i = bisect_right(knots, in_service)
        if i == 0:
            return self.ttft_s[0], self.tbot_s[0]
        part = (in_service - knots[i - 1]) / (knots[i] - knots[i - 1])
        ttft, tbot = self.ttft_s, self.tbot_s
        return ttft[i - 1] + part * (ttft[i] - ttft[i - 1]), tbot[i - 1] + part * (tbot[i] - tbot[i - 1])


def replica_curve(curve: MeasuredCurve, capacity_rps: float) -> ReplicaCurve:
    """Scale a measured curve, normalised by its wall, to a replica of another capacity: same latency at same load."""
    share = capacity_rps / curve.capacity_rps
    in_service = tuple(n * share for n in curve.in_service())
    slots = max(1, round(in_service[-1]))
    return ReplicaCurve(capacity_rps, slots, curve.output_tokens, in_service, curve.ttft_s, curve.tbot_s)


def h100_curve(variant: str = "vllm") -> MeasuredCurve:
    """Give the open-loop curve of Llama-3.1-8B on one H100 under a vLLM 0.11 variant.

    Raises:
        InvalidInputError: no such variant was measured.
    """
    table = [row for row in rows("inference_perf_h100_llama8b") if row["variant"] == variant]
    if not table:
        known = ", ".join(sorted({row["variant"] for row in rows("inference_perf_h100_llama8b")}))
        raise InvalidInputError("curve", (f"variant is {variant!r}; measured are {known}",))
    stages = [{name: float(text) for name, text in row.items() if name != "variant"} for row in table]
    below = [s for s in stages if s["completed_rps"] >= SERVED_BELOW_THE_WALL * s["requested_rps"]]
    beyond = [s for s in stages if s["completed_rps"] < SERVED_BELOW_THE_WALL * s["requested_rps"]]
    capacity = median(s["completed_rps"] for s in beyond)
    loads = [s["completed_rps"] / capacity for s in below]
    ttft = [s["ttft_mean_ms"] / 1000 for s in below]
    slope = (ttft[-1] - ttft[-2]) / (loads[-1] - loads[-2])
    return _curve(
        MeasuredCurve(
            name=f"h100-llama-3.1-8b-{variant.replace('+', '-')}",
            hardware="1x H100-80GB",
            model="llama-3.1-8b",
            source="kubernetes-sigs/inference-perf kubecon-na-2025, vLLM 0.11.0, open loop, Apache-2.0",
            capacity_rps=capacity,
            input_tokens=median(s["prompt_mean"] for s in stages),
            output_tokens=median(s["output_mean"] for s in stages),
            loads=(*loads, 1.0),
            ttft_s=(*ttft, ttft[-1] + slope * (1.0 - loads[-1])),
            tbot_s=(*(_tbot_s(s) for s in below), median(_tbot_s(s) for s in beyond)),
        )
    )


def silicon_curve(curve_id: int) -> MeasuredCurve:
    """Give a closed-loop curve of the silicon set by its id.

    Raises:
        InvalidInputError: no such curve ships.
    """
    points = [row for row in rows("silicon_curves_agg") if int(row["curve_id"]) == curve_id]
    if not points:
        raise InvalidInputError("curve", (f"curve_id is {curve_id}; not among the silicon curves (mostly even ids)",))
    points.sort(key=lambda row: float(row["concurrency"]))
    rates = [float(row["rps_est"]) for row in points]
    top = rates.index(max(rates))
    kept = [points[i] for i in range(top + 1) if i == 0 or rates[i] > max(rates[:i])]
    first = kept[0]
    return _curve(
        MeasuredCurve(
            name=f"silicon-{curve_id}",
            hardware=f"{int(first['gpus'])}x {first['system']}",
            model=f"{first['model']} {first['precision']}".strip(),
            source="ai-dynamo/aiconfigurator silicon_sample.csv, closed loop, Apache-2.0",
            capacity_rps=max(rates),
            input_tokens=float(first["isl"]),
            output_tokens=float(first["osl"]),
            loads=tuple(float(row["rps_est"]) / max(rates) for row in kept),
            ttft_s=tuple(float(row["ttft_ms"]) / 1000 for row in kept),
            tbot_s=tuple(float(row["tpot_ms"]) / 1000 for row in kept),
        )
    )


def _tbot_s(stage: dict[str, float]) -> float:
    return (stage["e2e_mean_ms"] - stage["ttft_mean_ms"]) / stage["output_mean"] / 1000


def _curve(raw: MeasuredCurve) -> MeasuredCurve:
    """Begin at load 0 with the first point's latency, and let nothing fall: the smaller of a falling pair is taken."""
    ttft = tuple(accumulate(reversed(raw.ttft_s), min))[::-1]
    tbot = tuple(accumulate(reversed(raw.tbot_s), min))[::-1]
    return MeasuredCurve(
        name=raw.name,
        hardware=raw.hardware,
        model=raw.model,
        source=raw.source,
        capacity_rps=raw.capacity_rps,
        input_tokens=raw.input_tokens,
        output_tokens=raw.output_tokens,
        loads=(0.0, *raw.loads),
        ttft_s=(ttft[0], *ttft),
        tbot_s=(tbot[0], *tbot),
    )
