"""A snapshot as one line of JSON, stable for scripts.

    {"commit": {SnapshotCommit}, "routes": [{RouteWeights}, ...], "removed": ["cluster|model|class", ...]}

`routes` are those written since the line before; in the first line all of them. Folding the lines by
(cluster, model, request_class) therefore gives the snapshot. Fields are those of the Avro records, by name and unit.
A filter leaves out routes, never lines: every commit extends the validity of all weights.
"""

from collections.abc import Callable

import orjson

from headrace.infra.weights_tail.fold import Shown
from headrace.schemas.ids import RouteKey, parse_route_key
from headrace.schemas.plain import to_plain


def json_line(shown: Shown, wanted: Callable[[RouteKey], bool]) -> bytes:
    """Give the line, with its line feed."""
    return orjson.dumps(
        {
            "commit": to_plain(shown.snapshot.commit),
            "routes": [to_plain(route) for route in shown.written() if wanted(route.route)],
            "removed": [key for key in shown.removed() if wanted(parse_route_key(key.encode()))],
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )
