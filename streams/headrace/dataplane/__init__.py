"""Weights to requests, inside a gateway: `Router.route()` says which engine, in about a microsecond, without I/O.

Importing this package needs only the base dependencies and loads no Kafka client; what talks to Kafka is imported by
its own name: `headrace.dataplane.feed` and `headrace.dataplane.reporter`.
"""

from headrace.dataplane.decision import Decision, DecisionReason, Outcome
from headrace.dataplane.guards.contract import AttemptOutcome
from headrace.dataplane.router import Router

__all__ = ["AttemptOutcome", "Decision", "DecisionReason", "Outcome", "Router"]
