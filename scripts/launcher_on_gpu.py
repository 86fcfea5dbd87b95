"""Shows the launcher on an NVIDIA GPU: values, times and faults of recorded plans.

On any machine, with the packages of this project:

    python scripts/launcher_on_gpu.py build build/plans

compiles the start kernels of some tasks for sm_90, records their plans without a GPU, and writes
them with inputs and the outputs of the simulator. On a machine with the GPU, where only Python 3.11
and NVIDIA's driver are needed:

    python scripts/launcher_on_gpu.py run build/plans

executes them and prints one line for each plan. The last line says whether all values are right and
a fault was found and survived. Exit code 0 if so, else 1.
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TASKS = ("softmax", "layer_norm", "cumsum", "matmul", "causal_attention", "grad_norm_clip")
H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "arch": "sm_90",
    "hip": None,
    "major": 9,
    "minor": 0,
    "warp_size": 32,
    "target": ["cuda", 90, 32],
    "multi_processor_count": 132,
    "shared_memory": 232448,
    "total_memory": 80 << 30,
    "L2_cache_size": 50 << 20,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
}
TOLERANCE = 0.02
"""Largest difference from the simulator's outputs, as a share of the largest output. Both round
sums in half precision in an order of their own; a wrong kernel differs by far more."""
CALLS = 50
FORMATS = {"float16": "e", "float32": "f", "int32": "i", "int64": "q"}


def build(folder: Path) -> None:
    """Records the plans of all tasks and writes them to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in TASKS:
        header, pieces, inputs, outputs = _recorded(f"triton2triton/{name}")
        about = [{"dtype": dtype, "size": len(data)} for dtype, data in outputs]
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("plan.json", json.dumps(header))
            archive.writestr("outputs.json", json.dumps(about))
            archive.writestr("codes", pieces[0])
            archive.writestr("constants", pieces[1])
            archive.writestr("inputs", inputs)
            archive.writestr("outputs", b"".join(data for _, data in outputs))
        print(f"{name}: {len(header['steps'])} steps, {len(pieces[0])} bytes of code")


def _recorded(task_id: str) -> tuple[Any, tuple[bytes, ...], bytes, list[tuple[str, bytes]]]:
    from contextlib import closing

    from kernel_gym.devices.base import Call
    from kernel_gym.devices.placement import storage_bytes
    from kernel_gym.devices.sim.planned_session import PlannedSession
    from kernel_gym.devices.sim.session import SimOptions
    from kernel_gym.protocol import worker as messages
    from kernel_gym.protocol.request import encode
    from kernel_gym.sandbox.spawn import shared_template
    from kernel_gym.tasks import Scale, get_task, make_inputs, train_workloads

    task = get_task(task_id)
    workload = train_workloads(task.problem, Scale.SIM)[0]
    inputs = make_inputs(task.problem, workload, seed=1)
    with closing(PlannedSession(task, SimOptions(trusted=True))) as session:
        session.load(task.start_source)
        call = session.call(inputs, workload.dims)
        request = session.sketch(inputs, workload.dims)
    assert isinstance(call, Call), call
    options = {"arch": "sm_90", "memory": H100["total_memory"], "reported": H100}
    child = shared_template().fork("recorder", [], options, trusted=True, buffers=2)
    child.channel.recv(60)
    load = messages.LoadOnSimulator("triton", task.entry, task.start_source)
    child.channel.request(encode(load)[0], timeout=60)
    answer = child.channel.request(encode(request)[0], timeout=120)
    child.close()
    assert "plan" in answer.header, answer.header
    tensors = [value for value in inputs.values() if hasattr(value, "untyped_storage")]
    data = b"".join(storage_bytes(tensor).numpy().tobytes() for tensor in tensors)
    outputs = []
    for output in call.outputs:
        assert output.tensor is not None
        dtype = str(output.tensor.dtype).removeprefix("torch.")
        outputs.append((dtype, storage_bytes(output.tensor.contiguous()).numpy().tobytes()))
    return answer.header["plan"], (*answer.buffers, b"", b"")[:2], data, outputs


def run(folder: Path) -> bool:
    """Executes the plans of a folder on the GPU and prints what they give."""
    environment = _replace_absent_packages()
    from kernel_gym.launcher.process import LauncherProcess, PlanFailedError
    from kernel_gym.plans.parse import parse_plan

    began = time.monotonic()
    launcher = LauncherProcess("cuda", environment=environment)
    print(f"launcher ready in {time.monotonic() - began:.2f} s")
    print(f"{'plan':18} launches  error    same  us by call  us by graph")
    right = True
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            read = archive.read
            plan = parse_plan(json.loads(read("plan.json")), read("codes"), read("constants"))
            inputs, expected = read("inputs"), read("outputs")
            about = json.loads(read("outputs.json"))
        launcher.load(plan)
        first, second = launcher.execute(inputs), launcher.execute(inputs)
        error = max(_errors(first, expected, about))
        unchanged = b"".join(first[len(about) :]) == inputs
        by_call = median(launcher.time(inputs, CALLS, graph=False)) * 1e6
        by_graph = median(launcher.time(inputs, CALLS, graph=True)) * 1e6
        right = right and error <= TOLERANCE and first == second and unchanged
        numbers = f"{plan.launches:8} {error:6.4f} {first == second!s:>7}"
        print(f"{path.stem:18} {numbers} {by_call:11.2f} {by_graph:12.2f}", flush=True)
    wild = _with_wild_pointer(plan)
    launcher.load(wild)
    try:
        launcher.execute(inputs)
        fault = "none"
    except PlanFailedError as error:
        fault = str(error)
    print(f"a wild pointer: {fault}; the launcher is lost: {launcher.lost}")
    right = right and launcher.lost and "700" in fault
    launcher.close()
    again = LauncherProcess("cuda", environment=environment)
    again.load(plan)
    right = right and again.execute(inputs) == second
    again.close()
    print("all is right" if right else "SOMETHING IS WRONG")
    return right


def _errors(results: list[bytes], expected: bytes, about: list[Any]) -> Iterator[float]:
    """Yields the largest difference of each output, as a share of its largest value."""
    place = 0
    for result, output in zip(results, about, strict=False):
        wanted = expected[place : place + output["size"]]
        place += output["size"]
        ours, theirs = (_numbers(data, output["dtype"]) for data in (result, wanted))
        largest = max(map(abs, theirs)) or 1
        worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
        yield worst / largest if worst == worst else float("inf")


def _numbers(data: bytes, dtype: str) -> list[float]:
    if dtype == "bfloat16":  # the upper half of a float32
        data = b"".join(b"\0\0" + data[at : at + 2] for at in range(0, len(data), 2))
        dtype = "float32"
    return [value for (value,) in struct.iter_unpack(f"<{FORMATS[dtype]}", data)]


def _with_wild_pointer(plan: Any) -> Any:
    """Returns a plan whose first launch gets an address where nothing is, as its first argument."""
    from kernel_gym.plans.types import LaunchStep, PlanArgument

    number = next(i for i, step in enumerate(plan.steps) if isinstance(step, LaunchStep))
    step = plan.steps[number]
    wild = PlanArgument((0x10_0000_0000).to_bytes(8, "little"))
    step = replace(step, arguments=(wild, *step.arguments[1:]))
    return replace(plan, steps=(*plan.steps[:number], step, *plan.steps[number + 1 :]))


def _replace_absent_packages() -> dict[str, str]:
    """Replaces two packages that the launcher does not need, if they are not installed."""
    folder = Path(tempfile.mkdtemp())
    stubs = {
        "gymnasium": "def register(**options):\n    pass\n",
        "lazy_loader": "def attach_stub(name, file):\n    return None, list, []\n",
    }
    for name, text in stubs.items():
        if importlib.util.find_spec(name) is None:
            (folder / f"{name}.py").write_text(text)
    sys.path[:0] = [str(ROOT), str(folder)]
    return {"PYTHONPATH": os.pathsep.join((str(ROOT), str(folder)))}


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("build", "run"):
        sys.exit("usage: launcher_on_gpu.py build|run FOLDER")
    if sys.argv[1] == "build":
        sys.path.insert(0, str(ROOT))
        build(Path(sys.argv[2]))
    else:
        sys.exit(0 if run(Path(sys.argv[2])) else 1)
