"""Server-sent events cut out of a byte stream, whatever its chunks: the payloads of `data`, one an event.

An event ends at an empty line; lines end in LF, CR LF or CR; several `data` lines are joined by LF; comments and other
fields are passed over. Bytes are only looked at, never kept beyond the event under way, which is bounded: a longer one
makes the splitter give up, and the stream is relayed without being measured.

Source: WHATWG HTML, 9.2.6 "Interpreting an event stream".
"""

import re
from typing import Final

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


class EventSplitter:
    """Splits one stream.

    Attributes:
        gave_up: an event was longer than the bound; nothing is found any more.
    """

    __slots__ = ("_data", "_limit", "_rest", "_size", "gave_up")

    def __init__(self, max_event_bytes: int) -> None:
        self._limit = max_event_bytes
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self.gave_up = False

    @property
    def between_events(self) -> bool:
        """Whether everything seen so far ended in whole events: an event of ours could follow."""
        return not self.gave_up and not self._rest.strip(b"\r\n") and not self._data

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give the payloads of the events that they complete."""
        if self.gave_up:
            return []
        events: list[bytes] = []
        for line in self._whole_lines(chunk):
            if line:
                self._take(line)
            elif self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data, self._size = [], 0
        if len(self._rest) + self._size > self._limit:
            self.gave_up = True
            self._rest, self._data = bytearray(), []
        return events

    def _whole_lines(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk and b"\r" not in chunk and not self._rest.endswith(b"\r"):
            self._rest += chunk  # bytes that come one by one are not copied over and over
            return []
        lines, rest = _lines(bytes(self._rest) + chunk if self._rest else chunk)
        self._rest = bytearray(rest)
        return lines

    def _take(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            payload = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data.append(payload)
            self._size += len(payload) + 1


def _lines(content: bytes) -> tuple[list[bytes], bytes]:
    """Cut at line ends; a CR at the very end waits for the LF that may belong to it."""
    held = b""
    if b"\r" not in content:
        *lines, rest = content.split(b"\n")
        return lines, rest
    if content.endswith(b"\r"):
        content, held = content[:-1], b"\r"
    *lines, rest = _LINE_END.split(content)
    return lines, rest + held
