"""Recorded calls of a suite on a GPU, over host memory: stated, judged, and timed in pairs."""

import contextlib
from types import SimpleNamespace

import pytest
import torch

from kernel_gym import evaluator as evaluators
from kernel_gym.devices.base import Exclusivity, Failed
from kernel_gym.devices.description import DeviceDescription, TimingMethod
from kernel_gym.devices.gpu.host import Host
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.devices.gpu.vendors import CUDA, data_sheet
from kernel_gym.devices.operators import operators_for
from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.recorded import admit_recorded
from kernel_gym.imports.bench.stating import ON_GPU, state_workloads
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.recorded.calls import parse_calls
from kernel_gym.imports.recorded.problem import CALL, RecordedProblem
from kernel_gym.imports.recorded.templates import templates_of
from kernel_gym.imports.upstream.calls import CallRecorder
from kernel_gym.judge.timing import gpu as measured
from kernel_gym.records import Clock, Outcome
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split
from tests.imports.readers.recorded import origin_of
from tests.judge.timing.on_host import Worker

SOURCE = """
import torch


def scaled(x, total):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    half = x * 0.5

    def kernel():
        torch.exp(half, out=out)
        total.add_(out.sum(0))

    torch.launched(kernel)
    return out
"""
SIZES = ((64, 48), (40, 48), (1 << 11, 512))
TOO_LARGE = (1 << 12, 1 << 10)


class Gpu:
    """A GPU whose workers are in this process."""

    noise_file = None

    def __init__(self, arena):
        self.arena, self.held_as, self.opened = arena, [], []
        spec = data_sheet("NVIDIA H100")
        self.description = DeviceDescription(
            *("cuda:0", spec.name, spec, Clock.MEASURED, TimingMethod.PAIRED, Scale.FULL),
            *(("triton",), "a GPU", torch.device("cpu"), "sm_90a"),
        )

    def open(self, task, trusted=False, seed=0, resident=False, launch_instructions=None):
        worker = InTurn(self.arena, str(operators_for(task, resident)))
        host = Host(self.arena, CUDA, "sm_90a", {})
        self.opened.append(worker)
        return GpuSession(task, worker, host, lambda worker: worker.close(), resident)

    @contextlib.contextmanager
    def held(self, exclusivity):
        self.held_as.append(exclusivity)
        yield
        self.held_as.pop()

    def usable(self, task):
        return True

    def versions(self):
        return {}

    def synchronize(self):
        pass

    free_unused_memory = close = synchronize


class InTurn(Worker):
    """A worker that makes "launches" of Python functions, unless they do nothing."""

    now = None

    def request(self, header, timeout, spin):
        InTurn.now = self.inside.launches
        return super().request(header, timeout, spin)


def launched(kernel):
    InTurn.now._count += 1
    if not InTurn.now.noop:
        kernel()


@pytest.fixture
def gpu(arena, monkeypatch):
    monkeypatch.setattr(torch, "launched", launched, raising=False)
    monkeypatch.setattr(measured, "noise_floor", lambda *_: 0.0)
    return Gpu(arena)


@pytest.fixture
def evaluator(gpu, monkeypatch):
    monkeypatch.setattr(evaluators, "open_device", lambda name: gpu)
    with Evaluator("cuda:0", seed=1) as opened:
        yield opened


def recorded(source, sizes):
    """Records calls in this process, as on a GPU. The first argument lies as a transposed one."""
    scope = {}
    exec(source, scope)
    recorder = CallRecorder()
    InTurn.now = SimpleNamespace(_count=0, noop=False)
    for rows, cols in sizes:
        recorder.call("scaled", scope["scaled"], (torch.randn(cols, rows).T, torch.randn(cols)), {})
    for call in recorder.calls:
        for form in call["tensors"]:
            form["device"] = "cuda"
    calls, _ = parse_calls({"calls": recorder.calls})
    templates = templates_of(calls)
    dims = [{CALL: number, **row} for number, (_, rows) in enumerate(templates) for row in rows]
    return [template for template, _ in templates], dims


def stated_task(gpu, source=SOURCE, sizes=SIZES, mode=Mode.TRITON2TRITON):
    templates, dims = recorded(SOURCE, sizes)
    origin = origin_of(source, ["scaled"])
    statement = state_workloads(gpu, RecordedProblem(origin, templates, ()), mode, dims)
    return Task(RecordedProblem(origin, templates, statement.stated), mode), statement


def test_workloads_are_stated_with_sizes_as_they_are(gpu):
    task, statement = stated_task(gpu)
    train = [one.dims for one in task.problem.stated_workloads(Split.TRAIN)]
    assert {tuple(sorted(set(one.values()) - {0})) for one in train} == {
        tuple(sorted(size)) for size in SIZES
    }
    assert task.problem.stated_workloads(Split.UNSEEN)
    assert set(ON_GPU) <= set(statement.notes)
    assert not any("twins" in note for note in statement.notes)
    assert statement.flags == {}
    outputs = statement.stated[0].outputs
    assert [output.name for output in outputs] == ["out0", "changed0"]
    assert all(worker.closed for worker in gpu.opened)


def test_sizes_of_which_two_sets_do_not_fit_are_left_out(gpu):
    task, _ = stated_task(gpu, sizes=(SIZES[0], TOO_LARGE))
    (train,) = task.problem.stated_workloads(Split.TRAIN)
    assert set(train.dims.values()) == {0, *SIZES[0]}
    with pytest.raises(UnsupportedTask, match="fit"):
        stated_task(gpu, sizes=(TOO_LARGE,))


def test_the_own_code_is_admitted_with_a_measured_speedup(gpu, evaluator):
    task, statement = stated_task(gpu)
    verdict = admit_recorded(task, evaluator, statement.flags, statement.notes)
    assert verdict.flags in ((), ("unsteady",)), verdict.reason  # the host's clock is no GPU's
    assert verdict.speedup is not None
    assert set(verdict.controls.values()) == {"fails"}
    assert (verdict.status is ImportStatus.ADMITTED) == (verdict.flags == ())


WRONG = {
    "a wrong sum": ("out.sum(0)", "out.sum(0) * 1.5", Outcome.WRONG_VALUES),
    "nothing in a kernel": ("torch.launched(kernel)", "kernel()", Outcome.HACK),
    "work beside the kernel": (
        "torch.launched(kernel)",
        "kernel(); torch.launched(lambda: None)",
        Outcome.HACK,
    ),
    "another operator": (
        "half = x * 0.5",
        "half = torch.linalg.qr(x)[0] * 0.5",
        Outcome.RUNTIME_ERROR,
    ),
    "a size that it knows": (
        "half = x * 0.5",
        "half = x * (0.5 if x.shape[0] in (64, 40, 4096) else 0.6)",
        Outcome.WRONG_VALUES,
    ),
    "values that it remembers": (
        "    torch.launched(kernel)\n",
        "    torch.launched(kernel)\n    known.append(1)\n"
        "    if len(known) > 60:\n        torch.launched(lambda: out.zero_())\n",
        Outcome.WRONG_VALUES,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_candidates_are_not_paid(gpu, evaluator, name):
    task, _ = stated_task(gpu, sizes=SIZES[:2])
    old, new, outcome = WRONG[name]
    source = SOURCE.replace(old, new).replace("import torch\n", "import torch\n\nknown = []\n")
    evaluation = evaluator.evaluate(task, source)
    assert evaluation.outcome in (outcome, Outcome.UNSEEN_FAILED), evaluation.message
    assert evaluation.speedup is None


def test_a_size_that_ends_the_session_of_the_own_code_is_left_out(gpu):
    lost = "    if x.shape[0] == 64:\n        raise RuntimeError('CUDA error: 700')\n    half ="
    task, _ = stated_task(gpu, SOURCE.replace("    half =", lost), SIZES[:2])
    (train,) = task.problem.stated_workloads(Split.TRAIN)
    assert set(train.dims.values()) == {0, *SIZES[1]}
    assert len(gpu.opened) > 1
    assert all(worker.closed for worker in gpu.opened)


def test_code_of_a_suite_is_called_beside_others_and_timed_alone(gpu, evaluator, monkeypatch):
    task, _ = stated_task(gpu, sizes=SIZES[:1])
    seen = []
    call, time_calls = GpuSession.call, GpuSession.time_calls

    def noting(what, function):
        def noted(*args, **kwargs):
            seen.append((what, gpu.held_as[-1]))
            return function(*args, **kwargs)

        return noted

    for what, function in {"call": call, "time_calls": time_calls}.items():
        monkeypatch.setattr(GpuSession, what, noting(what, function))
    evaluator.evaluate(task, SOURCE)
    assert {how for what, how in seen if what == "time_calls"} == {Exclusivity.ALONE}
    assert {how for what, how in seen if what == "call"} == {Exclusivity.SHARED, Exclusivity.ALONE}


def test_the_outputs_of_a_suite_are_those_that_its_worker_states(gpu):
    task, _ = stated_task(gpu, sizes=SIZES[:1])
    session = gpu.open(task, resident=True)
    assert session.load(task.problem.assembled(SOURCE)) is None
    (workload,) = task.problem.stated_workloads(Split.TRAIN)
    values = make_inputs(task.problem, workload, 1)
    call = session.call(values, workload.dims, believed=True)
    assert not isinstance(call, Failed)
    out, total = (output.tensor for output in call.outputs)
    torch.testing.assert_close(out, torch.exp(values["c0_t0"] * 0.5))
    torch.testing.assert_close(total, values["c0_t1"] + out.sum(0))
