"""Every record that travels on Kafka, by type."""

from typing import Final

from headrace.schemas.dead_letters import DeadLetter
from headrace.schemas.decisions import SolveRecord
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.overrides import Override
from headrace.schemas.routed import RoutedRequests
from headrace.schemas.signals import Demand, EngineSignals, NetworkProbe
from headrace.schemas.state import DemandState, EngineState, NetworkState
from headrace.schemas.weights import RouteWeights, SnapshotCommit

Record = (
    DeadLetter
    | Demand
    | DemandState
    | EngineSignals
    | EngineSpec
    | EngineState
    | LatencyProfile
    | NetworkProbe
    | NetworkState
    | Override
    | RouteWeights
    | RoutedRequests
    | SnapshotCommit
    | SolveRecord
)

RECORD_TYPES: Final[tuple[type[Record], ...]] = (
    DeadLetter,
    Demand,
    DemandState,
    EngineSignals,
    EngineSpec,
    EngineState,
    LatencyProfile,
    NetworkProbe,
    NetworkState,
    Override,
    RouteWeights,
    RoutedRequests,
    SnapshotCommit,
    SolveRecord,
)
