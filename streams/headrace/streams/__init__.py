"""Telemetry to engine state: pure folds in `core`, and the adapters that run them on Kafka."""
