"""Why a request went to one engine rather than another: from the weights, the session's slot, and nothing else."""
