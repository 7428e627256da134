import pytest

from headrace.streams.lease import Lease, LeaseLostError


def test_a_process_that_slept_through_its_session_may_not_write_and_never_may_again() -> None:
    times_s = iter((100.0, 100.1, 110.0, 120.0, 130.5, 131.0))
    lease = Lease(10.0, lambda: next(times_s))
    for _ in range(3):
        lease.look()
    for asleep in ("10.5", "11.0"):
        with pytest.raises(LeaseLostError, match=f"asleep for {asleep} s; the session is 10 s"):
            lease.look()
