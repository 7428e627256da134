"""What a request asks for, read and bounded: every problem at once, each with its value and its bound."""

from collections.abc import Mapping, Sequence

from headrace.schemas.errors import InvalidInputError

MAX_TEXT = 200
MAX_VERSION = (1 << 63) - 1


class Query:
    """Reads a request's parameters; `check()` raises if anything was wrong."""

    def __init__(self, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._given = given
        self._problems = [
            f"{name[:40]!r} is no parameter here; there are {', '.join(known) or 'none'}"
            for name in given
            if name not in known
        ]

    def number(self, name: str, default: int | None, least: int, most: int) -> int | None:
        """Read a whole number."""
        text = self._given.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
            self._problems.append(f"{name} is {text[:40]!r}; a whole number from {least} to {most}")
            return default
        return int(text)

    def count(self, name: str, default: int, most: int) -> int:
        """Read a number of things, at least one."""
        return self.number(name, default, 1, most) or default

    def version(self) -> int | None:
        """Read `version`; None is the newest."""
        return self.number("version", None, 1, MAX_VERSION)

    def text(self, name: str) -> str | None:
        """Read a name; None where it is not given."""
        text = self._given.get(name)
        if text is not None and not 0 < len(text) <= MAX_TEXT:
            self._problems.append(f"{name} has {len(text)} characters; from 1 to {MAX_TEXT}")
        return text

    def needed(self, name: str) -> str:
        """Read a name that must be given."""
        text = self.text(name)
        if text is None:
            self._problems.append(f"{name} is missing")
        return text or ""

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Read one of several words; the first is the default."""
        text = self._given.get(name, choices[0])
        if text not in choices:
            self._problems.append(f"{name} is {text[:40]!r}; one of {', '.join(choices)}")
            return choices[0]
        return text

    def check(self) -> None:
        """Raise where anything was wrong.

        Raises:
            InvalidInputError: with all of it.
        """
        if self._problems:
            raise InvalidInputError("request", tuple(self._problems))
