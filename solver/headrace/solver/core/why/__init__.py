"""Why an engine has its weight: prices in ms, what binds, what was rejected, what would help."""
