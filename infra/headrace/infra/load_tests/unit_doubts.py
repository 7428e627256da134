"""Times that no engine has: most likely they are of another unit than their column says.

    too short   seconds in a column of milliseconds       too long   milliseconds in a column of seconds

Judged is the shortest time before the wall, which no load explains. An end-to-end time is judged by the time between
tokens that it comes to. It is a doubt, and no refusal: an engine that was never seen is possible.
"""

from collections.abc import Iterator

from headrace.solver.core.profile.load_test import LoadStage
from headrace.solver.core.profile.wall import Wall

LEAST_TTFT_MS = 1.0
"""One forward pass, and a round trip to the engine."""
MOST_TTFT_MS = 10_000.0
"""An engine that is not full takes as long for a prompt of some hundred thousand tokens."""
LEAST_TBOT_MS = 0.1
"""One pass over the weights of a small model: 1 GB at 8 TB/s are 0.125 ms, and nothing else is done by then."""
MOST_TBOT_MS = 1_000.0
"""One pass over 80 GB of weights at 0.1 TB/s, a processor's memory."""
FACTOR = 1000.0
"""From one unit to the other."""
APART_FROM = 5.0
"""A whole request below its first token by less is no matter of units: it would be 200 times as long in the other."""


def unit_doubts(wall: Wall) -> Iterator[str]:
    """Give the times that are doubted, a sentence each with value and bound."""
    ttft_ms = min(stage.ttft_s for stage in wall.steady) * FACTOR
    # Of one token there is no time between tokens.
    tbot_ms = min((stage.tbot_s * FACTOR for stage in wall.steady if stage.tbot_s > 0.0), default=LEAST_TBOT_MS)
    for name, value, least in (("TTFT", ttft_ms, LEAST_TTFT_MS), ("TBOT", tbot_ms, LEAST_TBOT_MS)):
        if value < least:
            none = f"none below {least:g} ms is known of any GPU"
            yield f"the lowest {name} is {value:.3g} ms, and {none}: are these seconds?"
    if ttft_ms > MOST_TTFT_MS:
        yield (
            f"the lowest TTFT is {ttft_ms / FACTOR:.4g} s, and none above {MOST_TTFT_MS / FACTOR:g} s is known but of "
            "prompts of some hundred thousand tokens: are these milliseconds?"
        )
    if tbot_ms > MOST_TBOT_MS:
        yield (
            f"the lowest TBOT, (e2e - TTFT) / tokens, is {tbot_ms / FACTOR:.4g} s, and none above "
            f"{MOST_TBOT_MS / FACTOR:g} s is known of any GPU: are these milliseconds, or the end-to-end times?"
        )


def units_apart(stage: LoadStage) -> str:
    """Say that an end-to-end time below its own TTFT may be of another unit; empty where that would not mend it."""
    apart = APART_FROM * stage.e2e_s <= stage.ttft_s <= FACTOR * stage.e2e_s
    return "; is one of them in seconds, and the other in milliseconds?" if apart else ""
