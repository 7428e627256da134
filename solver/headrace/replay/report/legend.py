"""Which number is which: a word for each kind of mean that is told, the same on page, terminal, in JSON and docs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.replay.score.comparison import Comparison
from headrace.replay.score.off_policy import OffPolicyEstimate


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of mean: its word, and what it is."""

    name: str
    sentence: str


MET = Kind("met", "what simulated users waited: network, queues and engine, of every request; no profile is in it")
SCORED = Kind("scored", "what load profiles say of all traffic under a policy's weights: network, queues and engine")
ESTIMATED = Kind(
    "estimated", "what single decisions say (SNIPS): network and engine, under the load that the first variant made"
)
MEASURED = Kind("measured", "what engines told of themselves: without the network, of the first variant alone")
INSIDE = Kind(
    "scored, engine alone", "the score without the network, over the time that measured is of: those two are compared"
)
KINDS = (MET, SCORED, ESTIMATED, MEASURED, INSIDE)


def legend(comparison: Comparison) -> list[dict[str, Any]]:
    """Give the means of the variant that the others are held against, of each kind that there is."""
    first = comparison.variants[0]
    fleet = comparison.calibration.rows[0]
    estimate = first.off_policy
    means = (
        first.told("met_mean_ms").value if comparison.met else None,
        first.told("mean_ms").value,
        estimate.snips_ms if isinstance(estimate, OffPolicyEstimate) else None,
        fleet.measured_mean_ms,
        None if fleet.measured_mean_ms is None else fleet.scored_mean_ms,
    )
    told = zip(KINDS, means, strict=True)
    return [{"name": k.name, "is": k.sentence, "mean_ms": mean} for k, mean in told if mean is not None]


def legend_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Give it for a terminal; nothing of one kind alone, nor of a document of an older build."""
    rows = document.get("legend", ())
    if len(rows) < 2:
        return
    yield f"which number is which, by the mean of {document['recorded']}:"
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        yield f"  {row['name']:<{width}} {row['mean_ms']:>8,.0f} ms   {row['is']}"
