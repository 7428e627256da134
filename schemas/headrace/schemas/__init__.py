"""The records that travel on Kafka: what they hold, how they are framed, keyed, checked and read.

Every other part of headrace meets the others only here. Importing this package loads no Kafka client; that is
`headrace.schemas.bus`, which the pure cores may not import.
"""
