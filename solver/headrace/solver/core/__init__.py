"""The pure core: no clock, no dice, no I/O, no Kafka, no OR-Tools. The LP solver is handed in."""
