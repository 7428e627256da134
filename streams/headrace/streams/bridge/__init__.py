"""The bridge's place: foreign telemetry becomes canonical signals here. Nothing is here yet.

What will stand here: a stateless consumer group that reads teams' own topics where they are, decodes them (Avro, OTLP,
Prometheus, Influx, JSON and their kin), maps names and units by preset, packs the points of one engine and period into
one record, and re-keys it into `signals.*`. Everything with memory (differences of counters, windows) stays behind it,
in the folds of `headrace.streams.core`, so the bridge can be restarted and replayed freely.
"""
