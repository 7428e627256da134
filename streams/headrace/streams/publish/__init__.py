"""For engines that publish nothing today: a call in their own process, or a sidecar that reads their metrics.

Neither loads Faust; the call needs the base wheel alone.
"""
