"""A plan to what is published: integer weights, reasons, refusals, fallback, retry budget, the decision record."""
