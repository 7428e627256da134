"""How far the numbers of a report are told: five digits, in every file, table and sentence alike."""


def five_digits(value: float) -> float:
    """Round a number to what is told of it; more would be noise, and a second rounding might end beside the first."""
    return float(f"{value:.5g}") if abs(value) < 1e5 else round(value)
