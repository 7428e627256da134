"""Long work over history, in processes beside each other: how it is shared out, told of, and stopped."""
