"""What operators say exists: engines, and the latency profiles fitted for them off-line."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine: where it is, what it serves, what one replica can do. Operators own this record."""

    engine_id: str
    site: str
    models: tuple[str, ...]
    capabilities: tuple[str, ...]
    residency: tuple[str, ...]
    profile_id: str
    capacity_rps_per_replica: float | None
    address: str | None
    drain: bool

    @property
    def key(self) -> bytes:
        """Kafka key: the engine's id."""
        return self.engine_id.encode()


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Latency against load, fitted off-line: piecewise linear over `load_knots` (share of capacity, 0..1).

    `measured_to_load` is the highest load that was measured; beyond it the curve is extrapolated, and where it is 1 the
    wall was not reached: the capacity is the highest rate seen. Errors are relative, of the end-to-end time; those left
    out are of stages that the fit was made without, None where there were too few.
    """

    profile_id: str
    hardware: str
    model: str
    capacity_rps: float
    output_tokens: float
    load_knots: tuple[float, ...]
    ttft_s: tuple[float, ...]
    tbot_s: tuple[float, ...]
    measured_from_load: float
    measured_to_load: float
    fit_error_median: float | None
    fit_error_p90: float | None
    source: str
    left_out_error_median: float | None = None
    left_out_error_p90: float | None = None

    @property
    def key(self) -> bytes:
        """Kafka key: the profile's id."""
        return self.profile_id.encode()
