"""What an attempt says of its engine, for the guards: an engine's fault, its being full, or nothing at all."""

from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.infra.gateway.core.stream_timing import Ending

TOO_MANY = 429


def outcome_of_status(status: int) -> AttemptOutcome:
    """Judge an answer by its status: 429 says that it is full, 5xx that it failed, the rest that it works."""
    if status == TOO_MANY:
        return AttemptOutcome.REJECTED
    return AttemptOutcome.ERROR if status >= 500 else AttemptOutcome.OK


def outcome_of_stream(status: int, ending: Ending | None) -> AttemptOutcome:
    """Judge an answer that came to its end; `ending` is None where it was no stream.

    One that stops without its own end mark is left alone: engines differ in whether they send one.
    """
    return AttemptOutcome.ERROR if ending is Ending.ERROR else outcome_of_status(status)
