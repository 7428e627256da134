"""Identity templates: `{label}` stands for a label's value, `{@key}` for the record's; ordered, the first filled wins.

    {instance}             a label; resource attributes are labels, and names may have dots
    {@key} {@topic}        the Kafka key as text, the topic
    {@header.x-engine}     a header as text

A template is filled where every part of it is there and not empty. There is nothing else: no default, no expression; a
literal as the last template is a default that says so.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.schemas.raw import RawRecord

_PART = re.compile(r"\{([^{}]*)\}")
_RECORD_PARTS = ("@key", "@topic")


@dataclass(frozen=True, slots=True)
class Origin:
    """Of a message what templates may ask for; RawRecord without its value."""

    topic: str = ""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def of(cls, record: RawRecord) -> "Origin":
        """Give the origin of a record's points."""
        return cls(record.topic, record.key, record.headers)


@dataclass(frozen=True, slots=True)
class Template:
    """One template as it was written, split into literals (even places) and names (odd places)."""

    text: str
    parts: tuple[str, ...]

    @property
    def asks_record(self) -> bool:
        """Whether it needs more than labels."""
        return any(name.startswith("@") for name in self.parts[1::2])

    def fill(self, labels: Mapping[str, str], origin: Origin) -> str | None:
        """Give the text, or None where a part is not there or empty."""
        pieces: list[str] = []
        for i, part in enumerate(self.parts):
            if i % 2 == 0:
                pieces.append(part)
                continue
            value = labels.get(part) if not part.startswith("@") else _of_record(part, origin)
            if not value:
                return None
            pieces.append(value)
        return "".join(pieces)


def parse_template(text: str) -> Template | str:
    """Give the template, or the sentence that says what is wrong with it."""
    parts = tuple(_PART.split(text))
    if any("{" in literal or "}" in literal for literal in parts[::2]):
        return f"{text!r} has a brace without its pair"
    for name in parts[1::2]:
        if not name:
            return f"{text!r} has an empty {{}}"
        if name.startswith("@") and name not in _RECORD_PARTS and not name.startswith("@header."):
            return f"{text!r}: {{{name}}} is unknown; there are {{@key}}, {{@topic}} and {{@header.NAME}}"
    return Template(text, parts) if text else "a template is empty"


def _of_record(part: str, origin: Origin) -> str | None:
    if part == "@topic":
        return origin.topic
    if part == "@key":
        return None if origin.key is None else origin.key.decode("utf-8", "replace")
    wanted = part.removeprefix("@header.").lower()
    for name, value in origin.headers:
        if name.lower() == wanted:
            return value.decode("utf-8", "replace")
    return None
