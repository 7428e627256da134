"""Traces against the simulated fleet in closed loop, one run a policy; each run is scored as a history is.

trace ─► arrivals of each cluster ─► ClosedLoop (delayed signals, faults) ─► PlayedTicks ─► VariantScore
"""
