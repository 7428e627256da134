"""Dead letters counted by why and where from, each group with its newest letter: what a flood of them comes to.

1,204  MALFORMED       headrace.signals.engine  2026-01-02 03:04:05.678  no Avro framing: the value begins with 7b
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.infra.dead_letters.choice import Choice
from headrace.infra.dead_letters.lines import instant, printable
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import DeadLetter, Rejected
from headrace.schemas.raw import RawRecord


@dataclass(frozen=True, slots=True)
class LetterGroup:
    """Letters of one reason, topic and stage: how many, when the last was refused, and where that stands and why."""

    reason: str
    topic: str
    stage: str
    count: int
    newest_ms: int
    newest_partition: int
    newest_offset: int
    newest_detail: str


class LetterSummary:
    """Counts the wanted ones of the letters it is given; what is no dead letter is told to `say`."""

    def __init__(self, choice: Choice, say: Callable[[str], None]) -> None:
        self._choice = choice
        self._say = say
        self._groups: dict[tuple[str, str, str], LetterGroup] = {}
        self.seen = 0

    def __call__(self, record: RawRecord) -> None:
        """Take the next record."""
        self.seen += 1
        letter = decode(DeadLetter, record.value, record.headers)
        if isinstance(letter, Rejected):
            self._say(f"{record.topic}/{record.partition}/{record.offset} is no dead letter: {letter.detail}")
            return
        if not self._choice.takes(letter, record.timestamp_ms):
            return
        key = letter.reason.value, letter.topic, letter.stage
        found = self._groups.get(key)
        count = 1 if found is None else found.count + 1
        if found is not None and record.timestamp_ms < found.newest_ms:
            self._groups[key] = replace(found, count=count)
            return
        self._groups[key] = LetterGroup(
            *key, count, record.timestamp_ms, letter.partition, letter.offset, letter.detail
        )

    def groups(self) -> tuple[LetterGroup, ...]:
        """Give the groups, the largest first."""
        return tuple(sorted(self._groups.values(), key=lambda group: (-group.count, group.reason, group.topic)))


def summary_lines(groups: tuple[LetterGroup, ...]) -> tuple[str, ...]:
    """Give the table with its heading; () where there are no groups."""
    if not groups:
        return ()
    rows = [("count", "reason", "from", "newest (UTC)", "its detail")]
    for each in groups:
        source = f"{each.topic}, {each.stage}"
        rows.append((f"{each.count:,}", each.reason, source, instant(each.newest_ms), printable(each.newest_detail)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return tuple(
        "  ".join((row[0].rjust(widths[0]), *(row[i].ljust(widths[i]) for i in (1, 2, 3)), row[4])) for row in rows
    )
