"""A sidecar's scrape: a Prometheus endpoint's text -> the engine's signals; a failure is a sentence, not ill health."""

import http.client
import socket
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.schemas.raw import RawRecord
from headrace.streams.core.canonical.packs import Packed, Packs
from headrace.streams.core.canonical.translator import Translated, Translator
from headrace.streams.core.decode.contract import DecodeOptions
from headrace.streams.core.mapping.model import IdentityRule, TelemetryMapping
from headrace.streams.core.mapping.templates import Template

MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Scraped:
    """What one scrape gave; `problem` says why it gave nothing."""

    signals: tuple[Packed, ...] = ()
    translated: Translated = field(default_factory=Translated)
    problem: str = ""


class Endpoint:
    """One engine's metrics, read over HTTP.

    Args:
        url: of the exposition text.
        engine_id: whose they are, whatever the series say.
        mapping: what they mean.
        model: for series that name none.
        cluster: for counters of arrivals.
        timeout_s: of one scrape.
    """

    def __init__(
        self,
        url: str,
        engine_id: str,
        mapping: TelemetryMapping,
        *,
        model: str = "",
        cluster: str = "",
        timeout_s: float = 5.0,
    ) -> None:
        self._url = url
        self._engine_id = engine_id
        self._timeout_s = timeout_s
        self._translator = Translator(_of_engine(mapping, engine_id, model, cluster), DecodeOptions("prom_text"))

    def scrape(self) -> Scraped:
        """Read the endpoint once."""
        request = urllib.request.Request(self._url, headers={"Accept": "text/plain;version=0.0.4"})  # noqa: S310 - its owner gives the address
        now_ms = time.time_ns() // 1_000_000
        try:
            with urllib.request.urlopen(request, timeout=self._timeout_s) as answer:  # noqa: S310 - as above
                value: bytes = answer.read(MAX_BYTES + 1)
        except urllib.error.HTTPError as error:
            return Scraped(problem=f"{self._url} answers {error.code}")
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Scraped(problem=f"{self._url} does not answer: {error}")
        if len(value) > MAX_BYTES:
            return Scraped(problem=f"{self._url} gives more than {MAX_BYTES} bytes")
        return self.read(value, now_ms)

    def read(self, value: bytes, now_ms: int) -> Scraped:
        """Give the signals of a scrape's text."""
        translated = self._translator.translate(RawRecord(self._url, 0, 0, now_ms, None, value), now_ms)
        # There is no source record to read a second time: an idempotent producer writes each reading once.
        source = f"{self._engine_id}@{socket.gethostname()}"[:200]
        packs = Packs(self._url, 0, self._translator.mapping.hash, source, has_lineage=False)
        packs.add(translated)
        signals = tuple(packs.take())
        problem = ""
        if not signals:
            problem = f"{self._url}: not one series fits the mapping {self._translator.mapping.name}"
        return Scraped(signals, translated, problem)


def _of_engine(mapping: TelemetryMapping, engine_id: str, model: str, cluster: str) -> TelemetryMapping:
    fixed = IdentityRule((Template(engine_id, (engine_id,)),))
    rules = dict(mapping.identities)
    identities = tuple((name, fixed if name == "engine" else rule) for name, rule in rules.items())
    given = {"instance": engine_id, "model_name": model, "model": model, "cluster": cluster}
    labels = {**{name: value for name, value in given.items() if value}, **dict(mapping.labels)}
    return replace(mapping, identities=identities, labels=tuple(sorted(labels.items())))
