"""A problem as arrays, the linear program over them, its plan, and the proofs of it."""
