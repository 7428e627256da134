"""The demo: the whole path on one machine. A broker, the workers as child processes, data planes and a fleet."""
