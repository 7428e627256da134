"""What the bridge did in one period, counted, and said in one line of words."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from headrace.streams.core.canonical.translator import Translated

if TYPE_CHECKING:
    from headrace.schemas.dead_letters import RejectReason

MAX_NAMES: Final = 5
MAX_COUNTED: Final = 10_000
"""Distinct names that are counted apart; a flood of them must not fill the memory."""


class Tally:
    """Counts of one period, in place."""

    def __init__(self) -> None:
        self.records = 0
        self.points = 0
        self.readings = 0
        self.published = 0
        self.letters = 0
        self.letters_left_out = 0
        self.rejects: Counter[str] = Counter()
        self.reasons: Counter[RejectReason] = Counter()
        self.unmatched: Counter[str] = Counter()
        self.folded: Counter[str] = Counter()

    def add(self, translated: Translated) -> None:
        """Count one record."""
        self.records += 1
        self.points += translated.points
        self.readings += len(translated.readings) + len(translated.signals)
        for rejected in translated.rejects:
            self._count(self.rejects, f"{rejected.reason}: {rejected.detail}", 1)
            self.reasons[rejected.reason] += 1
        for name, count in translated.unmatched.items():
            self._count(self.unmatched, name, count)
        for engine, count in translated.folded.items():
            self._count(self.folded, engine, count)

    def sentence(self, did: str = "published") -> str:
        """Say what was done, or with another word for `did` what would be."""
        if not self.records:
            return "nothing to read"
        said = [f"{self.records} records read, {self.readings} readings of {self.points} points {did}"]
        said[0] += f" in {self.published} signals"
        if self.rejects:
            said.append(f"{self.rejects.total()} parts refused")
        if self.folded:
            said.append(f"{self.folded.total()} readings beyond max_series left out: is a label made from user input?")
        if not self.readings:
            said.append("not one reading fits the mapping: try `headrace map test`")
        return "; ".join(said)

    def fields(self) -> dict[str, Any]:
        """Give the counts for a log line."""
        found: dict[str, Any] = {
            "records": self.records,
            "points": self.points,
            "readings": self.readings,
            "signals": self.published,
            "dead_letters": self.letters,
        }
        for name, counts in (("rejects", self.rejects), ("unmatched", self.unmatched), ("folded", self.folded)):
            if counts:
                found[name] = dict(counts.most_common(MAX_NAMES))
        if self.letters_left_out:
            found["dead_letters_left_out"] = self.letters_left_out
        return found

    @property
    def is_alarming(self) -> bool:
        """Whether someone should look: series are folded, or nothing that was read fits."""
        return bool(self.folded) or bool(self.records and not self.readings)

    def _count(self, counts: Counter[str], name: str, count: int) -> None:
        if name in counts or len(counts) < MAX_COUNTED:
            counts[name] += count
        else:
            counts["(others)"] += count
