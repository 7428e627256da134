"""What the gateway decides without a socket, a clock or a loop: every file here is pure."""
