"""A latency profile: fitted from measurements, turned into the cost of load, cut into chords."""
