"""A simulated OpenAI-compatible engine: real HTTP, invented words, measured pace, and faults on demand."""
