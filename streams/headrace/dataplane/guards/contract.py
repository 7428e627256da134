"""What guards learn from, and what a detector is: a sum per engine that rises with bad news and alarms at a threshold.

    score <- max(0, score + evidence(sample)),   alarm where score >= threshold

Source: Page, "Continuous inspection schemes", Biometrika 1954 (CUSUM): the quickest way to tell a lasting change from
single bad requests, at a chosen rate of false alarms.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class AttemptOutcome(StrEnum):
    """What became of a request at an engine."""

    OK = "OK"
    ERROR = "ERROR"
    """The engine failed it: not reachable, lost, a status that says so."""
    TIMEOUT = "TIMEOUT"
    """No answer in time; to the detectors the same as an error."""
    REJECTED = "REJECTED"
    """The engine said that it is full. Full is not broken: only the throttle learns from it."""
    CANCELLED = "CANCELLED"
    """The client went away; says nothing of the engine."""


class Cause(StrEnum):
    """Which detector alarmed."""

    ERRORS = "ERRORS"
    SLOW_FIRST_TOKEN = "SLOW_FIRST_TOKEN"  # noqa: S105 - a token of text, not of access


@dataclass(frozen=True, slots=True)
class Sample:
    """One attempt, as a guard sees it. None where not measured, or where the snapshot expects nothing."""

    outcome: AttemptOutcome
    ttft_s: float | None = None
    expected_ttft_s: float | None = None


class Detector(Protocol):
    """A CUSUM. Its state is the score, a float per engine that begins at 0."""

    @property
    def cause(self) -> Cause:
        """What an alarm is called."""
        ...

    @property
    def threshold(self) -> float:
        """The score that is an alarm."""
        ...

    def learn(self, score: float, sample: Sample) -> float:
        """Give the score after a sample; the same score where the sample says nothing."""
        ...
