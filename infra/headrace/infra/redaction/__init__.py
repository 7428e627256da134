"""What may leave the company: snapshots and explanations without addresses, absolute numbers and own names."""
