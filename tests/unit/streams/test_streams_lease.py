import json
import logging

import pytest

from headrace.infra.log_lines import open_log
from headrace.streams.lease import Lease, LeaseLostError
from headrace.streams.library_logs import redirect_library_logs


def test_a_process_that_slept_through_its_session_may_not_write_and_never_may_again() -> None:
    times_s = iter((100.0, 100.1, 110.0, 120.0, 130.5, 131.0))
    lease = Lease(10.0, lambda: next(times_s))
    for _ in range(3):
        lease.look()
    for asleep in ("10.5", "11.0"):
        with pytest.raises(LeaseLostError, match=f"asleep for {asleep} s; the session is 10 s"):
            lease.look()


def test_what_a_library_logs_is_a_line_of_the_workers_own_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    redirect_library_logs(open_log())
    logging.getLogger("aiokafka.cluster").info("not said")
    logging.getLogger("headrace.kafka").warning("broker %s is away", "b:1")
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["event"], said["level"], said["logger"]) == ("broker b:1 is away", "warning", "headrace.kafka")
