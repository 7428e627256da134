"""Reads fields of parsed JSON and notes every problem with its place, instead of stopping at the first.

Each reading method gives a value that may be used to go on; whether it means anything shows in `problems`. A problem
says where, what was found, what is allowed, and for an unknown key the nearest known one.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, TypeVar, cast

from headrace.schemas.free_text import line_problem, text_problem
from headrace.schemas.ids import identifier_problem

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MAX_ITEMS = 1_000_000


class Reader:
    """One JSON object and where it stands; readers of one document share one list of problems."""

    def __init__(self, content: object, at: str, problems: list[str]) -> None:
        self._at = at
        self.problems = problems
        self._content: Mapping[str, Any] = {}
        self._is_object = isinstance(content, dict)
        if isinstance(content, dict):
            self._content = cast("dict[str, Any]", content)
        else:
            self._add("", f"is {_shown(content)}; expected an object")

    def note(self, name: str, text: str) -> None:
        """Add a problem of a field, or of the object itself where `name` is empty.

        What is no object has that one problem: that its fields are missing, too, tells nothing.
        """
        if self._is_object:
            self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        where = f"{self._at}.{name}" if self._at and name else (self._at or name or "problem")
        self.problems.append(f"{where} {text}")

    def only(self, *known: str) -> None:
        """Note every key that is not known, with the nearest that is."""
        for name in self._content:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                self.note(name, f"is no field; {hint}")

    def has(self, name: str) -> bool:
        """Say whether a field is there and not null."""
        return self._content.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """Read free text."""
        return self._string(name, default, text_problem)

    def identifier(self, name: str, default: str | None = None) -> str:
        """Read an identifier."""
        return self._string(name, default, identifier_problem)

    def line(self, name: str, default: str | None = None) -> str:
        """Read free text of one line."""
        return self._string(name, default, line_problem)

    def number(self, name: str, default: float | None = None, low: float = 0.0, high: float = math.inf) -> float:
        """Read a finite number within bounds; a boolean is none."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._wrong(name, value, "a number", 0.0)
        return self._within(name, _float(value), low, high)

    def count(self, name: str, default: int | None = None, low: int = 0, high: int = 10**9) -> int:
        """Read an integer within bounds."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(name, value, f"a whole number, {low} to {high}", 0)
        if not low <= value <= high:
            self.note(name, f"is {_shown(value)}; a whole number, {low} to {high}")
            return max(low, 0)
        return value

    def choice(self, name: str, kind: type[E]) -> E:
        """Read a member of an enumeration."""
        value, members = self._get(name, None), list(kind)
        if value not in [m.value for m in members]:
            return self._wrong(name, value, f"one of {', '.join(members)}", members[0])
        return kind(value)

    def names(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        """Read a list of identifiers without repeats, sorted."""
        values = self._list(name, required=required)
        for i, value in enumerate(values):
            problem = "a name is a string" if not isinstance(value, str) else identifier_problem("name", value)
            if problem is not None:
                self.note(f"{name}[{i}]", f"is {_shown(value)}; {problem}")
        named = sorted({value for value in values if isinstance(value, str)})
        if len(named) < sum(isinstance(value, str) for value in values):
            self.note(name, "names one twice")
        return tuple(named)

    def numbers(self, name: str, low: float, high: float) -> tuple[float, ...]:
        """Read a list of finite numbers within bounds."""
        found: list[float] = []
        for i, value in enumerate(self._list(name, required=True)):
            if isinstance(value, bool) or not isinstance(value, int | float):
                # It keeps its place, or there would seem to be too few.
                found.append(self._wrong(f"{name}[{i}]", value, "a number", 0.0))
            else:
                found.append(self._within(f"{name}[{i}]", _float(value), low, high))
        return tuple(found)

    def nested(self, name: str) -> "Reader":
        """Read an object; an absent one is empty."""
        return Reader(self._content.get(name, {}), f"{self._at}.{name}" if self._at else name, self.problems)

    def nested_list(self, name: str, *, required: bool = False) -> Iterator["Reader"]:
        """Read a list of objects."""
        for i, value in enumerate(self._list(name, required=required)):
            yield Reader(value, f"{self._at}.{name}[{i}]" if self._at else f"{name}[{i}]", self.problems)

    def items(self) -> Mapping[str, Any]:
        """Give the fields as they are."""
        return self._content

    def _string(self, name: str, default: str | None, judge: Callable[[str, str], str | None]) -> str:
        value = self._get(name, default)
        if not isinstance(value, str):
            return self._wrong(name, value, "a string", "")
        problem = judge(name, value)
        if problem is not None:
            self.note(name, problem.removeprefix(f"{name} "))
        return value

    def _list(self, name: str, *, required: bool) -> Sequence[Any]:
        value = self._get(name, None if required else [])
        if not isinstance(value, list):
            return self._wrong(name, value, "a list", [])
        found = cast("Sequence[Any]", value)
        return found if len(found) <= MAX_ITEMS else self._wrong(name, len(found), f"at most {MAX_ITEMS} items", [])

    def _get(self, name: str, default: object) -> object:
        if name in self._content:
            return self._content[name]
        if default is not None:
            return default
        self.note(name, "is missing")
        return _MISSING

    def _within(self, name: str, value: float, low: float, high: float) -> float:
        # An integer beyond all floats is not asked whether it is finite: that raises.
        if not (low <= value <= high and math.isfinite(value)):
            allowed = f"at least {low:g}" if math.isinf(high) else f"{low:g} to {high:g}"
            self.note(name, f"is {_shown(value)}; a finite number, {allowed}")
            return max(low, 0.0)
        return value

    def _wrong(self, name: str, value: object, expected: str, instead: T) -> T:
        if value is not _MISSING:
            self.note(name, f"is {_shown(value)}; expected {expected}")
        return instead


def _float(value: float) -> float:
    """Give a number as a float; an integer beyond all floats is infinite, and refused as such."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


_MISSING = object()


def _shown(value: object) -> str:
    # Python refuses to write an integer of more than some thousand digits.
    if isinstance(value, int) and value.bit_length() > 64 * 8:
        return "an integer beyond all measure"
    return "missing" if value is None else repr(value)[:60]
