"""Prints the wanted ones of the dead letters it is given: a table, or lines of JSON."""

from collections import Counter
from collections.abc import Callable

import click

from headrace.infra.dead_letters.choice import Choice
from headrace.infra.dead_letters.lines import heading, json_line, table_line
from headrace.schemas.codec import decode
from headrace.schemas.dead_letters import DeadLetter, Rejected
from headrace.schemas.raw import RawRecord


class LetterPrinter:
    """Prints to standard output; what is no dead letter is told to `say`."""

    def __init__(self, choice: Choice, say: Callable[[str], None], *, as_json: bool) -> None:
        self._choice = choice
        self._say = say
        self._as_json = as_json
        self.seen = 0
        self.shown = 0
        self._reasons: Counter[str] = Counter()

    def __call__(self, record: RawRecord) -> None:
        """Take the next record."""
        self.seen += 1
        letter = decode(DeadLetter, record.value, record.headers)
        if isinstance(letter, Rejected):
            self._say(f"{record.topic}/{record.partition}/{record.offset} is no dead letter: {letter.detail}")
            return
        self._reasons[letter.reason.value] += 1
        if not self._choice.takes(letter, record.timestamp_ms):
            return
        if self._as_json:
            click.echo(json_line(letter, record.timestamp_ms), nl=False)
        else:
            if not self.shown:
                click.echo(heading())
            click.echo(table_line(letter, record.timestamp_ms))
        self.shown += 1

    def none_shown(self, topic: str) -> str:
        """Say that none of what the topic holds was wanted, and what reasons there are to ask for."""
        reasons = ", ".join(f"{count} {reason}" for reason, count in self._reasons.most_common())
        since = " since then" if self._choice.since_ms else ""
        return f"none of {self.seen} in {topic}{since}" + (f", which are {reasons}" if reasons else "")
