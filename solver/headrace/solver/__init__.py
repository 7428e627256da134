"""State to weights: a pure core that turns a problem into a snapshot, and the worker that feeds and publishes it."""
