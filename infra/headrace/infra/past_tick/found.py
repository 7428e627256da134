"""A tick of the past with what it was computed from: what finding one gives, and computing it again takes. Pure."""

from dataclasses import dataclass

from headrace.replay.core.recorded import RecordedTick
from headrace.solver.core.inputs.state_view import StateView
from headrace.solver.settings import SolverSettings


@dataclass(frozen=True, slots=True)
class FoundTick:
    """A tick with what it was computed from. `proved` says that the inputs are, by digest, what the solver had read."""

    recorded: RecordedTick
    view: StateView
    settings: SolverSettings
    proved: bool
