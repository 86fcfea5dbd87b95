"""The command that renews modelled head-room changes nothing else in a verdict."""

from benchmarks.renew_head_room import renewed
from kernel_gym.tasks import get_problem
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.verdicts import stored_verdict

PROBLEM = "matmul"
SIM = "sim:gfx942"


def test_a_stored_verdict_is_up_to_date():
    verdict = stored_verdict(get_problem(PROBLEM))
    assert renewed(get_problem(PROBLEM), verdict) == verdict


def test_only_modelled_head_room_over_pytorch_is_renewed():
    verdict = stored_verdict(get_problem(PROBLEM))
    spoiled = {
        device: {mode: one.model_copy(update={"head_room": 99.0}) for mode, one in modes.items()}
        for device, modes in verdict.devices.items()
    }
    spoiled_verdict = verdict.model_copy(update={"devices": spoiled})
    renewed_devices = renewed(get_problem(PROBLEM), spoiled_verdict).devices
    assert renewed_devices[SIM][Mode.TORCH2TRITON] == verdict.devices[SIM][Mode.TORCH2TRITON]
    assert renewed_devices[SIM][Mode.TRITON2TRITON].head_room == 99.0
    measured = [modes for device, modes in renewed_devices.items() if not device.startswith("sim:")]
    assert measured
    assert all(one.head_room == 99.0 for modes in measured for one in modes.values())
