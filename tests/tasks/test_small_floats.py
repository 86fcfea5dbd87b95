"""The 8-bit floats of each architecture, and that tasks run only where theirs are native."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.gpu.vendors import DATA_SHEETS
from kernel_gym.evaluator import Evaluator
from kernel_gym.exploits import runner
from kernel_gym.exploits.loader import Honest
from kernel_gym.hardware import SIMULATED
from kernel_gym.policies.evaluate import runnable
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.tasks import get_problem, get_task, problem_names
from kernel_gym.tasks.small_floats import FNUZ, OCP, UnfitDevice, native_small_floats, runs_on
from kernel_gym.tasks.verdicts import content_hash

SMALL = FNUZ | OCP


def test_the_table_is_that_of_the_data_sheets_and_of_the_simulator():
    for spec in [*SIMULATED.values(), *(sheet for _, sheet in DATA_SHEETS)]:
        assert native_small_floats(spec.arch) == SMALL & spec.matrix_rate.keys(), spec.name
    kinds = {"fnuz": FNUZ, "ocp": OCP, None: frozenset()}
    for arch, target in TARGETS.items():
        assert native_small_floats(arch) == kinds[target.small_floats]


@pytest.mark.parametrize("arch", ["sm_80", "gfx1100", "gfx90a", ""])
def test_others_have_none(arch):
    assert native_small_floats(arch) == frozenset()


MX = {"quantize_mxfp8_ocp"}
"""Problems of the MX formats, which OCP specifies: their 8-bit floats have no other form."""


def test_every_problem_with_small_floats_has_a_twin_in_the_other_format():
    of_gfx942 = {name for name in problem_names() if get_problem(name).dtypes & FNUZ}
    of_others = {name for name in problem_names() if get_problem(name).dtypes & OCP}
    assert of_others - MX == {f"{name}_ocp" for name in of_gfx942} != set()
    for name in problem_names():
        fits = {arch: runs_on(get_problem(name), arch) for arch in ("gfx942", "gfx950", "sm_90a")}
        assert fits["gfx942"] == (name not in of_others)
        assert fits["gfx950"] == fits["sm_90a"] == (name not in of_gfx942)


def test_twins_are_drawn_alike_and_differ_in_scale():
    twins = get_problem("quantize_fp8_group"), get_problem("quantize_fp8_group_ocp")
    x = torch.randn(2, 256, generator=torch.Generator().manual_seed(0)).bfloat16()
    scales = [twin.oracle(x=x)[1] for twin in twins]
    torch.testing.assert_close(scales[0] * 240, scales[1] * 448)
    assert len({content_hash(twin) for twin in twins}) == 2


def test_runs_leave_out_what_a_device_lacks():
    tasks = tuple(get_task(f"triton2triton/{name}") for name in ("gelu", "quantize_fp8_group_ocp"))
    notes: list[str] = []
    assert runnable(tasks, "sim:gfx942", notes.append) == [tasks[0]]
    assert "gfx942 has other 8-bit floats" in notes[0]
    assert runnable(tasks, "sim:gfx950", notes.append) == [*tasks]
    honest = Honest("ocp", tasks[1], tasks[1].kernel_source)
    assert not runner.runs_on(honest, "sim:gfx942")
    assert runner.runs_on(honest, "sim:gfx950")


def test_a_task_on_a_device_without_its_types_is_refused():
    task = get_task("triton2triton/quantize_fp8_group_ocp")
    with Evaluator(device="sim:gfx942") as evaluator, pytest.raises(UnfitDevice) as caught:
        evaluator.evaluate(task, task.kernel_source)
    assert str(caught.value) == (
        "quantize_fp8_group_ocp holds float8_e4m3fn, for which gfx942 has no instructions; "
        "expected a device of gfx95* or gfx12* or sm_89* or sm_9* or sm_10* or sm_12*"
    )
