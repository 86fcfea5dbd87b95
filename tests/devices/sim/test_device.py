"""The simulated devices other than the default one: whole evaluations, facts, foreign code."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernel_gym.devices import device_statuses
from kernel_gym.devices.base import Failed
from kernel_gym.devices.sim.backend import NAMES
from kernel_gym.devices.sim.requests import RefusedError, check_geometry, check_target
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.evaluator import Evaluator
from kernel_gym.hardware import SIMULATED
from kernel_gym.records import Outcome
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.sim.constants import FIGURES
from kernel_gym.sim.engine.engine import Engine
from kernel_gym.tasks import get_task
from kernel_gym.worker.sim.properties import PROPERTIES
from tests.sim.support import kernel_text, launch

SOFTMAX, MATMUL = "triton2triton/softmax", "triton2triton/matmul"
ASKS = """
import torch, triton
def softmax(x):
    info = torch.cuda.get_device_properties(0)
    driver = triton.runtime.driver.active
    told = driver.utils.get_device_properties(0)
    target = driver.get_current_target()
    raise ValueError(f"{info.name} {info.gcnArchName} {info.multi_processor_count} "
                     f"{told['max_shared_mem']} {target.arch} {torch.cuda.get_arch_list()}")
"""


@pytest.fixture(scope="module", params=NAMES)
def evaluator(request):
    with Evaluator(device=request.param, seed=0) as opened:
        yield opened


@pytest.mark.parametrize("task", [SOFTMAX, MATMUL, "hip2hip/add"])
def test_the_baseline_passes(task, evaluator):
    opened = get_task(task)
    if opened.language not in evaluator.device.description.languages:
        pytest.skip(hip_toolchain(evaluator.device.description.spec.arch).problem)
    result = evaluator.evaluate(opened, opened.baseline_source)
    assert result.outcome is Outcome.PASSED, (result.message, result.detail)
    assert result.device == evaluator.device.description.name
    assert result.speedup == pytest.approx(1.0, abs=0.05)


def test_host_code_is_told_of_the_device(evaluator):
    spec = evaluator.device.description.spec
    session = evaluator.device.open(get_task(SOFTMAX))
    try:
        assert session.load(ASKS) is None
        failed = session.call({"x": torch.zeros(4)}, {})
    finally:
        session.close()
    assert isinstance(failed, Failed)
    words = f"{spec.name.partition(',')[0]} {spec.arch}:sramecc+:xnack- {spec.compute_units}"
    assert f"{words} {spec.lds_bytes} {spec.arch} ['{spec.arch}']" in failed.message


def test_all_tables_have_the_same_devices():
    names = {name.partition(":")[2] for name in NAMES}
    assert names == set(SIMULATED) == set(TARGETS) == set(FIGURES) == set(PROPERTIES)
    for arch, spec in SIMULATED.items():
        target, figures = TARGETS[arch], FIGURES[arch]
        assert spec.compute_units == target.compute_units == figures.compute_units
        assert spec.lds_bytes == target.lds_bytes == figures.lds_bytes
        assert spec.memory_bandwidth == figures.hbm_bytes_per_s
        told = PROPERTIES[arch]
        told_bandwidth = 2e3 * told.memory_clock_khz * told.bus_bits / 8
        assert told_bandwidth == pytest.approx(spec.memory_bandwidth, rel=0.01)


@pytest.mark.parametrize("arch", SIMULATED)
def test_matrix_rates_are_those_of_the_data_sheet(arch):
    spec, figures = SIMULATED[arch], FIGURES[arch]
    numbers = {"float16": 0, "bfloat16": 1, "int8": 2, "float8_e4m3fnuz": 3, "float8_e4m3fn": 3}
    for dtype, rate in spec.matrix_rate.items():
        number = numbers.get(str(dtype).removeprefix("torch."))
        if number is not None:
            modelled = figures.matrix_operations[number] * figures.compute_units * figures.clock_hz
            assert modelled == pytest.approx(rate, rel=0.01), dtype


def test_doctor_names_them_and_what_they_lack():
    result = {status.name: status for status in device_statuses()}
    for name in NAMES:
        status = result[name]
        assert status.usable
        assert status.arch == name.partition(":")[2]
        has_hip = isinstance(hip_toolchain(status.arch), HipToolchain)
        assert ("hip" in status.languages) == has_hip
        assert has_hip or status.fixes


def test_a_gfx950_has_more_lds():
    kernel = Engine(threads=1).load(kernel_text("\ts_nop 0", lds=100 << 10))
    check_geometry(kernel, (1, 1, 1), (64, 1, 1), 0, SIMULATED["gfx950"])
    with pytest.raises(RefusedError, match="102400 bytes of LDS, 65536 are there"):
        check_geometry(kernel, (1, 1, 1), (64, 1, 1), 0, SIMULATED["gfx90a"])


@pytest.mark.parametrize("grid", [(1 << 31, 1, 1), (1, 1 << 33, 0), (1 << 16, 1 << 16, 1)])
def test_a_launch_of_too_many_workgroups_is_refused_with_the_limit(grid):
    kernel = Engine(threads=1).load(kernel_text("\ts_nop 0"))
    with pytest.raises(RefusedError, match=f"{1 << 31} workgroups along each axis"):
        check_geometry(kernel, grid, (64, 1, 1), 0, SIMULATED["gfx942"])


def test_the_model_follows_the_device():
    x, seconds = np.zeros(1 << 16, np.uint32), {}
    body = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32_e32 v1, 2, v0
        s_lshl_b32 s6, s2, 8
        v_add_u32_e32 v1, s6, v1
        s_waitcnt lgkmcnt(0)
        global_store_dword v1, v0, s[4:5]"""
    for arch in SIMULATED:
        engine = Engine(threads=1)
        kernel = engine.load(kernel_text(body).replace("gfx942", arch))
        result = launch(engine, kernel, (1024,), (64,), [x], model_time=True)
        assert result.fault is None, result.fault.message
        seconds[arch] = result.profile["hbm_us"]
    rates = {arch: FIGURES[arch].hbm_bytes_per_s for arch in SIMULATED}
    assert seconds["gfx90a"] / seconds["gfx942"] == pytest.approx(
        rates["gfx942"] / rates["gfx90a"], rel=0.02
    )
    assert seconds["gfx950"] < seconds["gfx942"]


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_code_for_another_device_is_refused(arch):
    engine = Engine(threads=1)
    text = kernel_text("\ts_nop 0").replace("gfx942", arch)
    check_target(engine.load(text), SIMULATED[arch])
    with pytest.raises(RefusedError, match=f"compiled for {arch}, expected gfx942"):
        check_target(engine.load(text), SIMULATED["gfx942"])
