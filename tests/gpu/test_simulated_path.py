"""The whole path of `rocm:0` on the simulated HIP runtime: recorder, launchers, judge."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import kernel_gym
from kernel_gym.devices.base import Call, Failed, FailureKind, NotOfferedError, TimedCall
from kernel_gym.devices.placement import storage_bytes
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.judge.expected import compare, expect
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.comparison import compare_sessions
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.judge.timing.fresh_inputs import FreshInputs
from kernel_gym.judge.timing.paired import PairedResult
from kernel_gym.simulated_rocm.folders import library_folder
from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads
from tests.gpu.simulated import device

pytestmark = pytest.mark.skipif(library_folder() is None, reason="the HIP runtime is not built")
needs_hip = pytest.mark.skipif(
    not isinstance(hip_toolchain("gfx942"), HipToolchain), reason="no toolchain"
)
GUIDES = Path(kernel_gym.__file__).parent / "tasks" / "guides"
TASK = get_task("triton2triton/row_sum")
WORKLOAD = train_workloads(TASK.problem, Scale.SIM)[0]
DIMS = WORKLOAD.dims


@pytest.fixture(scope="module")
def gpu():
    with closing(device()) as opened:
        yield opened


def inputs(seed=1):
    return make_inputs(TASK.problem, WORKLOAD, seed)


def opened(gpu, source=TASK.start_source, trusted=False):
    session = gpu.open(TASK, trusted)
    assert session.load(source) is None
    return session


def changed(old: str, new: str) -> str:
    assert old in TASK.start_source
    return TASK.start_source.replace(old, new)


def test_values_come_back_and_inputs_stay(gpu):
    with closing(opened(gpu)) as session:
        for seed in (1, 2):
            given = inputs(seed)
            call = session.call(given, DIMS)
            assert isinstance(call, Call), call
            (output,) = (one.tensor for one in call.outputs)
            torch.testing.assert_close(
                output.float(), given["x"].float().sum(-1), rtol=1e-2, atol=0.5
            )
            assert call.modified_inputs == ()
            assert call.launches == 1


def test_without_launches_outputs_are_poison(gpu):
    with closing(opened(gpu)) as session:
        call = session.call(inputs(), DIMS, noop=True)
        assert call.launches == 0
        assert bool(call.outputs[0].tensor.isnan().all())


def test_a_call_that_uses_memory_of_an_earlier_one_is_refused(gpu):
    source = TASK.start_source + (
        "\nhonest_ = row_sum\nkept = []\n\ndef row_sum(x):\n"
        "    out = honest_(x)\n    kept.append(out)\n    return kept[0]\n"
    )
    with closing(opened(gpu, source)) as session:
        failed = session.call(inputs(), DIMS)
        assert isinstance(failed, Failed)
        assert "allocated before it" in failed.message


def test_host_code_that_needs_data_is_refused(gpu):
    source = TASK.start_source + (
        "\nhonest_ = row_sum\n\ndef row_sum(x):\n    x.sum().item()\n    return honest_(x)\n"
    )
    with closing(opened(gpu, source)) as session:
        assert isinstance(session.call(inputs(), DIMS), Failed)


def test_a_view_of_an_input_is_no_output(gpu):
    source = "import torch\n\ndef row_sum(x):\n    return x[:, 0].as_strided((x.shape[0],), (1,))\n"
    with closing(opened(gpu, source)) as session:
        call = session.call(inputs(), DIMS)
        assert call.outputs[0].tensor is None
        assert "view of the input 'x'" in call.outputs[0].problem


def test_an_imported_task_is_not_offered(gpu):
    class Recorded:
        id = "suite/task"

        class problem:
            recorded = True

    with pytest.raises(NotOfferedError, match="suite/task is not offered on rocm:0"):
        gpu.open(Recorded())


def test_a_language_without_plans_is_not_offered(gpu, monkeypatch):
    monkeypatch.setattr(gpu, "description", replace(gpu.description, languages=("triton",)))
    with pytest.raises(NotOfferedError, match="sources in hip have no plan there"):
        gpu.open(get_task("hip2hip/softmax"))


def test_host_code_that_changes_its_plan_later_is_refused_before_the_gpu_is_taken(gpu):
    source = TASK.start_source + (
        "\nhonest_ = row_sum\ncalls = []\n\ndef row_sum(x):\n    calls.append(1)\n"
        "    return honest_(x) if len(calls) < 9 else honest_(x.clone())\n"
    )
    shapes = {name: value.to("meta") for name, value in inputs().items()}
    with closing(opened(gpu)) as honest, closing(opened(gpu, source)) as changing:
        for session in (honest, changing):
            assert session.compile([(DIMS, shapes)]) is None
            session.sample_from(3)
        assert honest.repeat(shapes, DIMS) is None
        failed = changing.repeat(shapes, DIMS)
        assert isinstance(failed, Failed)
        assert "two recordings of one call differ" in failed.message


def test_a_transposed_copy_alone_is_right_also_without_launches(gpu):
    task = get_task("triton2triton/transpose")
    workload = train_workloads(task.problem, Scale.SIM)[0]
    expected = expect(task.problem, workload, seed=1)
    with closing(gpu.open(task)) as session:
        assert session.load("def transpose(x):\n    return x.t().contiguous()\n") is None
        for noop in (False, True):
            call = session.call(expected.inputs, workload.dims, noop)
            assert (call.launches, session.facts()) == (0, ())
            assert compare(task.problem, expected, (call.outputs[0].tensor,)).passed


@needs_hip
@pytest.mark.parametrize(("old", "new", "right"), [("", "", True), ("expf(", "exp2f(", False)])
def test_a_source_in_hip_becomes_a_plan_with_a_code_object(gpu, old, new, right):
    task = get_task("hip2hip/softmax")
    workload = train_workloads(task.problem, Scale.SIM)[0]
    expected = expect(task.problem, workload, seed=1)
    assert old in task.start_source
    with closing(gpu.open(task)) as session:
        assert session.load(task.start_source.replace(old, new)) is None
        call = session.call(expected.inputs, workload.dims)
        assert isinstance(call, Call), call
        assert session.repeat(expected.inputs, workload.dims) is None
        assert compare(task.problem, expected, (call.outputs[0].tensor,)).passed is right
        assert [kernel.vgprs > 0 for kernel in session.facts()] == [True]


@needs_hip
def test_what_does_not_compile_in_hip_names_its_line(gpu):
    task = get_task("hip2hip/softmax")
    with closing(gpu.open(task)) as session:
        failed = session.load(task.start_source + "\nint main() { return x; }\n")
        assert (failed.kind, "'x'" in failed.message) == (FailureKind.COMPILE, True)


def test_two_sides_are_compared_on_fresh_inputs(gpu):
    with (
        closing(opened(gpu, trusted=True)) as baseline,
        closing(opened(gpu)) as candidate,
    ):
        deferred = DeferredChecks()
        result = compare_sessions(TASK, WORKLOAD, baseline, candidate, 3, gpu, deferred)
        assert isinstance(result, PairedResult), result
        assert result.graph
        assert result.slowed == 0
        assert len(result.checks) == -(-len(result.effects) // TIMING.alone_every)
        assert result.interval.mean == pytest.approx(0.0, abs=0.02)
        assert deferred.check() == ""


@pytest.mark.parametrize("name", ["adamw_step", "ball_query", "dropout"])
def test_timed_calls_of_a_task_whose_scalars_are_drawn_are_right(gpu, name):
    task = get_task(f"triton2triton/{name}")
    workload = train_workloads(task.problem, Scale.SIM)[0]
    with (
        closing(gpu.open(task, trusted=True)) as baseline,
        closing(gpu.open(task)) as candidate,
    ):
        for session in (baseline, candidate):
            assert session.load(task.start_source) is None
        deferred = DeferredChecks()
        result = compare_sessions(task, workload, baseline, candidate, 3, gpu, deferred)
        assert isinstance(result, PairedResult), result
        assert deferred.check() == ""


def test_each_call_has_inputs_of_its_own(gpu):
    drawn = FreshInputs(TASK, WORKLOAD, 5, gpu.memory, torch.device("cpu"))
    first, second = drawn.draw(), drawn.draw()
    assert not torch.equal(first["x"], second["x"])
    for given in (first, second):
        call = drawn.place(given)
        placed = gpu.memory.read(call.inputs, given["x"].nbytes)
        assert torch.equal(placed, storage_bytes(given["x"]))
        assert call == TimedCall(call.inputs)


def test_a_kernel_that_writes_beside_its_output_is_found(gpu):
    source = TASK.start_source + (
        "\n@triton.jit\ndef beside(out, n):\n    tl.store(out + n, 1.0)\n"
        "\nhonest_ = row_sum\n\ndef row_sum(x):\n    out = honest_(x)\n"
        "    beside[(1,)](out, out.numel())\n    return out\n"
    )
    with closing(opened(gpu, source)) as session:
        failed = session.call(inputs(), DIMS)
        assert isinstance(failed, Failed)
        assert failed.kind is FailureKind.RUNTIME
    with closing(opened(gpu)) as session:  # the next candidate has a launcher that works
        assert isinstance(session.call(inputs(), DIMS), Call)


def test_a_launcher_that_was_killed_is_started_again(gpu):
    with closing(opened(gpu)) as session:
        assert isinstance(session.call(inputs(), DIMS), Call)
        session._slot.renew()
        assert isinstance(session.call(inputs(), DIMS), Call)


@needs_hip
@pytest.mark.parametrize("language", ["flydsl", "tilelang"])
def test_a_language_that_writes_amd_code_has_plans_too(gpu, language):
    pytest.importorskip(language)
    task = get_task("triton2triton/softmax")
    source = (GUIDES / language / "softmax.py").read_text(encoding="utf-8")
    workload = train_workloads(task.problem, Scale.SIM)[0]
    expected = expect(task.problem, workload, seed=1)
    with closing(gpu.open(task)) as session:
        assert session.load(source) is None
        call = session.call(expected.inputs, workload.dims)
        assert isinstance(call, Call), call
        assert compare(task.problem, expected, (call.outputs[0].tensor,)).passed
        assert call.launches == 1
