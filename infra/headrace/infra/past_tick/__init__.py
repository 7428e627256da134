"""One tick of the solver, now or in the past: found in what it wrote, and computed again from what it had read."""
