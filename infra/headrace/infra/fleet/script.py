r"""What happens when, as text: one `t=TIME COMMAND` a line. `#` begins a comment; empty lines are skipped.

    t=0s     phase warm-up
    t=20s    kill engine-b            engine commands: kill, revive, restart, silence, heal
    t=30s    slow engine-a 3          every latency x3
    t=30s    errors engine-a 0.25     a quarter answered with errors
    t=40s    replicas engine-c 2
    t=1m10s  surge cluster-b 1.5      arrivals x1.5; `surge cluster-b 1` ends it

TIME counts from the first routed request: `90`, `90s`, `1m30s`, `1500ms`. Lines may stand in any order; at one time
they run in the order of the text. All that is wrong is reported at once, with its line.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headrace.infra.fleet.commands import (
    Command,
    Errors,
    Heal,
    Kill,
    Phase,
    Replicas,
    Restart,
    Revive,
    Silence,
    Slow,
    Surge,
)
from headrace.schemas.errors import InvalidInputError
from headrace.schemas.ids import is_identifier

_TIME = re.compile(r"(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?|(\d+)ms")
_LINE = re.compile(r"t=(\S+)\s+(\S.*)")
MAX_FACTOR = 100.0
MAX_REPLICAS = 1000


@dataclass(frozen=True, slots=True)
class Timed:
    """A command and its time in seconds from the start."""

    at_s: float
    command: Command


@dataclass(frozen=True, slots=True)
class Names:
    """The engines and clusters that a script may name."""

    engines: Sequence[str]
    clusters: Sequence[str]


def parse_script(text: str, names: Names) -> tuple[Timed, ...]:
    """Read a script; the commands come sorted by time.

    Raises:
        InvalidInputError: with every line that cannot be read, and why.
    """
    timed: list[Timed] = []
    problems: list[str] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        try:
            timed.append(_line(line, names))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise InvalidInputError("script", tuple(problems))
    return tuple(sorted(timed, key=lambda t: t.at_s))


def parse_duration_s(text: str) -> float:
    """Read `90`, `90s`, `1m30s`, `2m` or `1500ms` as seconds.

    Raises:
        ValueError: it is none of these.
    """
    found = _TIME.fullmatch(text)
    if not text or found is None:
        raise ValueError(f"time is {text!r}; expected 90, 90s, 1m30s or 1500ms")
    minutes, seconds, millis = found.groups()
    if millis is not None:
        return int(millis) / 1000
    return 60 * int(minutes or 0) + float(seconds or 0)


def _line(line: str, names: Names) -> Timed:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"{line!r}; expected t=TIME COMMAND")
    word, *rest = found[2].split()
    if word not in _COMMANDS:
        raise ValueError(f"command is {word!r}; known are {', '.join(_COMMANDS)}")
    shape, build = _COMMANDS[word]
    if len(rest) != len(shape.split()):
        raise ValueError(f"{found[2]!r}; expected {word} {shape}")
    return Timed(parse_duration_s(found[1]), build(rest, names))


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise ValueError(f"{kind} is {name!r}; known are {', '.join(known)}")
    return name


def _engine(rest: Sequence[str], names: Names) -> str:
    return _known("engine", rest[0], names.engines)


def _number(name: str, text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ValueError(f"{name} is {text!r}; {low:g} to {high:g}")
    return value


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_REPLICAS):
        raise ValueError(f"replicas is {text!r}; a whole number, 0 to {MAX_REPLICAS}")
    return int(text)


def _phase(name: str) -> Phase:
    if not is_identifier(name):
        raise ValueError(f"phase is {name!r}; letters, digits and -._:/@")
    return Phase(name)


_COMMANDS: dict[str, tuple[str, Callable[[Sequence[str], Names], Command]]] = {
    "kill": ("ENGINE", lambda rest, names: Kill(_engine(rest, names))),
    "revive": ("ENGINE", lambda rest, names: Revive(_engine(rest, names))),
    "restart": ("ENGINE", lambda rest, names: Restart(_engine(rest, names))),
    "silence": ("ENGINE", lambda rest, names: Silence(_engine(rest, names))),
    "heal": ("ENGINE", lambda rest, names: Heal(_engine(rest, names))),
    "slow": (
        "ENGINE FACTOR",
        lambda rest, names: Slow(_engine(rest, names), _number("factor", rest[1], 0.1, MAX_FACTOR)),
    ),
    "errors": ("ENGINE SHARE", lambda rest, names: Errors(_engine(rest, names), _number("share", rest[1], 0.0, 1.0))),
    "replicas": ("ENGINE COUNT", lambda rest, names: Replicas(_engine(rest, names), _count(rest[1]))),
    "surge": (
        "CLUSTER FACTOR",
        lambda rest, names: Surge(
            _known("cluster", rest[0], names.clusters), _number("factor", rest[1], 0.01, MAX_FACTOR)
        ),
    ),
    "phase": ("NAME", lambda rest, _: _phase(rest[0])),
}
