"""The pure core: signals -> panes -> window -> smoothing -> state. No clock, no dice, no I/O, no Faust, no Kafka."""
