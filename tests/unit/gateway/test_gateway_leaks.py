"""Nothing is left behind by many requests of every kind, the failing ones too."""

from dataclasses import replace

from gateway_inputs import QUICK, on_loop, rig
from gateway_strain import mixed, mixed_engines, settled
from thoroughness import examples

REQUESTS = examples(400, thorough=2_000)


def test_hundreds_of_requests_leave_no_file_no_task_and_no_reservation() -> None:
    async def test() -> None:
        async with rig(mixed_engines(), replace(QUICK, engine_keepalive_s=0.1)) as r:
            await mixed(r, 100)
            files, tasks = await settled(r)
            await mixed(r, REQUESTS)
            files_after, tasks_after = await settled(r)
            assert files_after <= files + 2
            assert tasks_after <= tasks
            assert r.gateway.admission.bodies.reserved == 0

    on_loop(test)
