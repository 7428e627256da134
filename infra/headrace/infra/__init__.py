"""Everything around the cores: brokers, topics, the simulated fleet, the demo, and the `headrace` command."""
