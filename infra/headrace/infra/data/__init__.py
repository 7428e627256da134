"""Measured data that the simulated fleet runs on: arrivals, latency against load, round trips. See SOURCES.md."""
