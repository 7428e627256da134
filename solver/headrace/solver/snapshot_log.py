"""A snapshot as records of a log that forgets nothing: routes that changed, tombstones, `!commit`; keyframes whole.

    keyframe  tick  tick  ...  keyframe      a reader may begin anywhere, and is whole from the next keyframe on

A tick is a keyframe where its decision record carries the settings.
"""

from collections.abc import Collection

from headrace.schemas.bus.transactions import Outgoing
from headrace.schemas.codec import encode
from headrace.solver.core.tick import Tick


def logged(topic: str, tick: Tick, removed: Collection[bytes]) -> list[Outgoing]:
    """Give a tick's records for `topic`, the commit last."""
    routes = {route.key: route for route in tick.snapshot.routes}
    keys = sorted(routes if tick.record.settings is not None else tick.changed)
    return [
        *((topic, key, encode(routes[key])) for key in keys),
        *((topic, key, None) for key in sorted(removed)),
        (topic, tick.snapshot.commit.key, encode(tick.snapshot.commit)),
    ]
