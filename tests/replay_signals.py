"""What engines, gateways and probes of the recorded run say in each second, before any fold."""

from headrace.schemas.signals import (
    Demand,
    Distribution,
    EngineSignals,
    EngineStatus,
    Health,
    Metric,
    NetworkProbe,
    Vantage,
)
from replay_history import ENGINES, START_MS

READY = EngineStatus(Health.HEALTHY, 1, 1, 1, 3.0, 0.0, 0.2)


def signals(second: int) -> list[EngineSignals | Demand | NetworkProbe]:
    start, end = START_MS + 1000 * second, START_MS + 1000 * (second + 1)
    told: list[EngineSignals | Demand | NetworkProbe] = []
    for number, (engine, site) in enumerate(ENGINES.items()):
        e2e = Distribution("m", Metric.E2E, 4, 2.0 + 0.1 * number + 0.01 * second, 0.2, 0.9, 0, -16, (1, 2, 1))
        told.append(EngineSignals(engine, "s", Vantage.ENGINE, start, end, (e2e,), READY))
        for cluster in ("A", "B"):
            rtt_s = 0.002 if cluster.lower() == site else 0.050
            told.append(NetworkProbe(cluster, site, "p", end, rtt_s))
    told += [Demand(cluster, "m", "default", "g", start, end, 40 + second, 0, 0) for cluster in ("A", "B")]
    return told
