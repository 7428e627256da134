"""Records of the solver's input topics with round numbers, for tests of the view, the assembly and the worker."""

from dataclasses import replace

from headrace.schemas.codec import encode
from headrace.schemas.fleet import EngineSpec, LatencyProfile
from headrace.schemas.raw import RawRecord
from headrace.schemas.records import Record
from headrace.schemas.signals import Health
from headrace.schemas.state import DemandState, EngineState, Invalid, NetworkState
from headrace.schemas.topics import TopicSettings, topic_table

NOW_MS = 1_000_000
TOPICS = topic_table(TopicSettings())
_ROLE_OF = {topic.record: topic.name for topic in TOPICS.values()}


def spec(engine_id: str, **fields: object) -> EngineSpec:
    return replace(
        EngineSpec(
            engine_id=engine_id,
            site="site-a",
            models=("m",),
            capabilities=(),
            residency=(),
            profile_id="p",
            capacity_rps_per_replica=100.0,
            address=None,
            drain=False,
        ),
        **fields,
    )


def profile(profile_id: str = "p", **fields: object) -> LatencyProfile:
    return replace(
        LatencyProfile(
            profile_id=profile_id,
            hardware="gpu",
            model="m",
            capacity_rps=50.0,
            output_tokens=100.0,
            load_knots=(0.0, 0.5, 1.0),
            ttft_s=(0.1, 0.2, 0.8),
            tbot_s=(0.01, 0.012, 0.03),
            measured_from_load=0.0,
            measured_to_load=1.0,
            fit_error_median=None,
            fit_error_p90=None,
            source="by hand",
        ),
        **fields,
    )


def engine_state(engine_id: str, last_ms: int = NOW_MS, **fields: object) -> EngineState:
    return replace(
        EngineState(
            engine_id=engine_id,
            as_of_ms=last_ms,
            last_signal_ms=last_ms,
            signal_timestamp_ms=last_ms,
            health=Health.HEALTHY,
            replicas_desired=1,
            replicas_ready=1,
            replicas_reporting=1,
            running=0.0,
            waiting=0.0,
            kv_usage=0.0,
            latencies=(),
            coverage=1.0,
            filled=(),
            invalid=Invalid.NO,
            late=0,
            applied_offset=7,
            panes=b"opaque",
        ),
        **fields,
    )


def demand_state(cluster: str, rps: float | None, last_ms: int = NOW_MS, **fields: object) -> DemandState:
    return replace(
        DemandState(
            cluster=cluster,
            model="m",
            request_class="default",
            as_of_ms=last_ms,
            last_signal_ms=last_ms,
            signal_timestamp_ms=last_ms,
            rate_rps=rps,
            smoothed_rps=rps,
            peak_1s_rps=rps,
            rejected_rps=0.0,
            retry_rps=0.0,
            coverage=1.0,
            invalid=Invalid.NO,
            late=0,
            applied_offset=7,
            panes=b"opaque",
        ),
        **fields,
    )


def network_state(
    cluster: str, site: str, rtt_s: float | None, last_ms: int = NOW_MS, **fields: object
) -> NetworkState:
    return replace(
        NetworkState(
            from_cluster=cluster,
            to_site=site,
            as_of_ms=last_ms,
            last_signal_ms=last_ms,
            signal_timestamp_ms=last_ms,
            count=10,
            rtt_s=rtt_s,
            smoothed_s=rtt_s,
            lost_share=0.0,
            invalid=Invalid.NO,
            late=0,
            applied_offset=7,
            panes=b"opaque",
        ),
        **fields,
    )


def raw(record: Record, offset: int = 0) -> RawRecord:
    return RawRecord(_ROLE_OF[type(record)], 0, offset, NOW_MS, record.key, encode(record))


def tombstone(record: Record, offset: int = 0) -> RawRecord:
    return RawRecord(_ROLE_OF[type(record)], 0, offset, NOW_MS, record.key, None)
