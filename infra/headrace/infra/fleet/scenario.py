"""What a simulation is of: clusters with their mean rates, engines with replicas and curves, all at real places."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from numpy.random import Generator

from headrace.infra.fleet.curves import MeasuredCurve, ReplicaCurve, replica_curve
from headrace.infra.fleet.engine import EngineTimes
from headrace.infra.fleet.script import Names
from headrace.infra.fleet.trace import Arrival, arrivals, azure_conversation
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.solver.core.profile.fit_profile import fit_profile
from headrace.solver.core.profile.load_test import LoadStage, ProfileLabels


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """One frontend cluster: its AWS region, its mean arrivals, and where on the trace's loop it starts (0..1)."""

    name: str
    region: str
    rate_rps: float
    trace_start: float


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """One engine as the fleet's operator declares it, the replicas it starts with, and how each really behaves."""

    spec: EngineSpec
    replicas: int
    curve: ReplicaCurve


Tokens = tuple[float, float]
Arrivals = Callable[[ClusterSpec, Tokens, Generator], Iterator[Arrival]]
"""(cluster, mean input and output tokens, dice) -> its arrivals, endless or not."""


def azure_arrivals(cluster: ClusterSpec, tokens: Tokens, dice: Generator) -> Iterator[Arrival]:
    """Give the arrivals of the trace that ships, endless."""
    return arrivals(azure_conversation(), cluster.name, cluster.trace_start, tokens, dice)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole fleet. One model, one request class `default`; sites are AWS regions."""

    name: str
    model: str
    clusters: tuple[ClusterSpec, ...]
    engines: tuple[EngineSetup, ...]
    profiles: tuple[LatencyProfile, ...]
    mean_tokens: Tokens
    times: EngineTimes = field(default_factory=EngineTimes)
    default_script: str = ""
    arrivals: Arrivals = azure_arrivals

    @property
    def names(self) -> Names:
        """The names that a script for this scenario may use."""
        return Names([e.spec.engine_id for e in self.engines], [c.name for c in self.clusters])


def engine_setup(engine_id: str, region: str, replicas: int, replica_rps: float, curve: MeasuredCurve) -> EngineSetup:
    """Declare an engine of `replicas` x `replica_rps` that follows a measured curve, normalised by its wall."""
    spec = EngineSpec(
        engine_id=engine_id,
        site=region,
        models=(curve.model,),
        capabilities=(),
        residency=(),
        profile_id=curve.name,
        capacity_rps_per_replica=replica_rps,
        address=f"sim://{engine_id}",
        drain=False,
    )
    return EngineSetup(spec, replicas, replica_curve(curve, replica_rps))


def profile_of(curve: MeasuredCurve, replica_rps: float) -> LatencyProfile:
    """Fit the profile that the solver is given to the same points that the engines follow, per replica."""
    stages = [
        LoadStage(
            offered_rps=load * replica_rps,
            completed_rps=load * replica_rps,
            output_tokens=curve.output_tokens,
            ttft_s=curve.ttft_s[i],
            e2e_s=curve.latency_s(i),
        )
        for i, load in enumerate(curve.loads)
        if load > 0.0
    ]
    return fit_profile(ProfileLabels(curve.name, curve.hardware, curve.model, curve.source), stages)
