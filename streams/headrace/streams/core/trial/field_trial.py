"""What a trial says of one field of a mapping."""

from dataclasses import dataclass

from headrace.streams.core.mapping.reading import Field


@dataclass(frozen=True, slots=True)
class FieldTrial:
    """One field: how many readings and differences it gave, and the mean of what they hold, seconds."""

    field: Field
    required: bool
    readings: int
    differences: int
    resets: int
    missing: int
    observations: int
    mean: float | None
    period_s: float | None
    names: tuple[str, ...]
