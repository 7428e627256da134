"""Kafka as the other parts see it: settings, readers and writers. The only place in the schemas with a Kafka client.

Importing this package loads no client; each module does that for itself. `settings` and `security` are pure.
"""
