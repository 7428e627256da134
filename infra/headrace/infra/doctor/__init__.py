"""`headrace doctor`: is it all right; and if not, what is wrong, what it means, and the command that mends it.

gather/        the only place that asks a broker: every call within a bound, what could not be had is named
core/          the picture of what was gathered, and the checks: pure functions of the picture and the time
"""
