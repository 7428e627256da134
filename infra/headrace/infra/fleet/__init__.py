"""The simulated fleet: measured engines, real arrivals and round trips, every request through `Router.route()`.

Event-driven over virtual time: no clock, no thread, no Kafka in here; dice are seeded numpy Generators passed in. The
same seed gives the same bytes. Records leave through a `Sink`, so a test collects them, the demo publishes them, and
replay reads them later.
"""
