"""Pictures of snapshots: what the page shows of a version, as values whose JSON is published. Pure.

Every function takes what is held (snapshots, specs, states, decision records) and gives a value; `to_plain` of it is
the JSON, and infra/json-schemas/console-*.schema.json its schema. Flows in RPS, durations by their names, shares 0..1.
"""
