"""Everything that is wrong with a document, found at once: readers of single values that note a problem and go on."""

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, TypeVar, cast

import jmespath
import jmespath.exceptions

from headrace.streams.core.mapping.model import Path

E = TypeVar("E", bound=StrEnum)


class Problems:
    """A list of sentences, each with where it is, what is there and what is expected."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, at: str, what: str) -> None:
        """Note one problem."""
        self.found.append(f"{at} {what}")

    def unknown_keys(self, at: str, section: Mapping[str, Any], known: Iterable[str]) -> None:
        """Note each key that is not known, with the nearest that is."""
        names = list(known)
        for key in section:
            if key not in names:
                near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
                self.add(f"{at}.{key}" if at else key, f"is unknown; {hint}")

    def section(self, at: str, value: object, known: Iterable[str]) -> Mapping[str, Any]:
        """Give a mapping whose keys are known; an empty one where it is none."""
        if not isinstance(value, dict):
            self.add(at, f"is {value!r:.60}; expected keys and values")
            return {}
        found = cast("dict[str, Any]", value)
        self.unknown_keys(at, found, known)
        return found

    def texts(self, at: str, value: object) -> dict[str, str]:
        """Give a mapping of texts; numbers and booleans are read as they are written."""
        if not isinstance(value, dict):
            self.add(at, f"is {value!r:.60}; expected names and texts")
            return {}
        found: dict[str, str] = {}
        for name, text in cast("dict[str, Any]", value).items():
            if isinstance(text, bool):
                found[name] = "true" if text else "false"
            elif isinstance(text, str | int | float):
                found[name] = str(text)
            else:
                self.add(f"{at}.{name}", f"is {text!r:.60}; expected a text")
        return found

    def list_of_texts(self, at: str, value: object) -> list[str]:
        """Give a list of texts; an empty one where it is none."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            self.add(at, f"is {value!r:.60}; expected a list of texts")
            return []
        return cast("list[str]", value)

    def word(self, at: str, value: object, words: type[E]) -> E | None:
        """Give the member that the text names; None where it names none."""
        try:
            return words(str(value))
        except ValueError:
            names = [word.value for word in words]
            near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            self.add(at, f"is {value!r:.60}; {hint}")
            return None

    def whole(self, at: str, value: object, lowest: int, highest: int) -> int:
        """Give a whole number in bounds; the lowest where it is none."""
        if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
            self.add(at, f"is {value!r:.60}; expected a whole number, {lowest} to {highest}")
            return lowest
        return value

    def path(self, at: str, value: object) -> Path | None:
        """Give a compiled JMESPath; None where it is none."""
        if not isinstance(value, str):
            self.add(at, f"is {value!r:.60}; expected a JMESPath")
            return None
        try:
            return Path(value, jmespath.compile(value))
        except (jmespath.exceptions.JMESPathError, ValueError) as error:
            self.add(at, f"is {value!r:.80}; no JMESPath: {' '.join(str(error).split())[:160]}")
            return None
