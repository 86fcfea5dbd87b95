"""Runs a user's own program on a simulated GPU in the same process, and reports every launch.

Nothing is judged here, so device and program may share a process. Device memory is mapped. The CPU
build of PyTorch computes torch operators on device tensors in that memory, and their time is that
of their roofline. The process is confined like any worker.
"""

from __future__ import annotations

import ctypes
import linecache
import os
import socket
import sys
import traceback
import types
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from kernel_gym.devices.base import Audit
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu
from kernel_gym.protocol.request import Request
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.hip import sim as hip
from kernel_gym.worker.sim import cuda_facade, tensor, triton_driver
from kernel_gym.worker.sim.function_mode import GuardlessMode
from kernel_gym.worker.sim.local import LocalRuntime
from kernel_gym.worker.sim.results import Recorder
from kernel_gym.worker.sim.runtime import SimRuntime
from kernel_gym.worker.sim.tensor import DeviceTensor

CPU = torch.device("cpu")
MAX_TRACE = 4000
_BY_DEVICE = frozenset(
    packet
    for packet in tensor._HANDLERS
    if packet not in (torch.ops.aten._local_scalar_dense, torch.ops.aten.copy_)
)


class ScriptRuntime(LocalRuntime):
    """Requests to a device in the same process, in memory that the caller has created."""

    def __init__(self, gpu: SimulatedGpu) -> None:
        SimRuntime.__init__(self, arch=gpu.spec.arch)
        self.gpu = gpu

    def charge(self, moved: int, flops: int, dtype: torch.dtype) -> None:
        """Adds the modelled time of one torch operator."""
        self.gpu.seconds += self.gpu.spec.operator_seconds(moved, flops, dtype)

    def _ask(self, request: Request) -> dict[str, Any]:
        try:
            return super()._ask(request)
        finally:
            self.gpu.launches.clear()  # they are on record


def on_host(value: DeviceTensor) -> torch.Tensor:
    """Returns the CPU tensor over the memory of a device tensor."""
    return sim_memory.device_tensor(
        value.data_ptr(), list(value.shape), list(value.stride()), value.dtype
    )


def _to_host(value: Any) -> Any:
    if isinstance(value, DeviceTensor):
        return on_host(value)
    return CPU if isinstance(value, torch.device) and value.type == "cuda" else value


class ComputeMode(TorchDispatchMode):
    """Computes torch operators on device tensors in the device's memory."""

    def __init__(self, runtime: ScriptRuntime) -> None:
        super().__init__()
        self.runtime = runtime

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Runs one operator."""
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        device = kwargs.get("device")
        wants = device is not None and torch.device(device).type == "cuda"
        if not wants and not any(isinstance(a, DeviceTensor) for a in leaves):
            return func(*args, **kwargs)
        to_host = device is not None and not wants
        packet = func.overloadpacket
        converts = packet is torch.ops.aten._to_copy and self._converts(args[0], kwargs)
        if not to_host and not converts and (packet in _BY_DEVICE or self._views(func)):
            return tensor.run_operator(func, args, kwargs, self.runtime)
        return self._compute(func, args, kwargs, stays=not to_host)

    def _converts(self, source: torch.Tensor, kwargs: dict[str, Any]) -> bool:
        dtype = kwargs.get("dtype")
        return isinstance(source, DeviceTensor) and dtype not in (None, source.dtype)

    def _views(self, func: Any) -> bool:
        return func.is_view or func.overloadpacket in tensor.METADATA

    def _compute(self, func: Any, args: tuple, kwargs: dict[str, Any], stays: bool) -> Any:
        given = [a for a in tree_leaves((args, kwargs)) if isinstance(a, DeviceTensor)]
        out = func(*tree_map(_to_host, args), **tree_map(_to_host, kwargs))
        made = [o for o in tree_leaves(out) if isinstance(o, torch.Tensor)]
        moved = sum(t.numel() * t.itemsize for t in (*given, *made))
        self.runtime.charge(moved, 0, made[0].dtype if made else torch.float32)
        if not stays:
            return out
        return tree_map(lambda o: self._place(o, args, given), out)

    def _place(self, out: Any, args: tuple, given: list[DeviceTensor]) -> Any:
        """Returns a result on the device: an argument written in place, or a new tensor."""
        if not isinstance(out, torch.Tensor):
            return out
        for argument in args:
            if isinstance(argument, torch.Tensor) and argument is out:
                return out
        for tensor_given in given:
            same = out.numel() and out.data_ptr() == tensor_given.data_ptr()
            if same and out.shape == tensor_given.shape:
                return tensor_given
        fresh = tensor._fresh(torch.empty_like(out, device="meta"), self.runtime)
        if out.numel():
            on_host(fresh).copy_(out)
        return fresh


class ReadMode(TorchFunctionMode):
    """Allows calls that copy values to the host. A worker refuses them; a program needs them."""

    _T = torch.Tensor
    _READS = (
        *(_T.__float__, _T.__int__, _T.__index__, _T.__bool__, _T.tolist, _T.numpy),
        *(_T.__array__, _T.item, _T.cpu, _T.__repr__, _T.__format__),
    )

    def __init__(self, runtime: ScriptRuntime) -> None:
        super().__init__()
        self._runtime = runtime

    def __torch_function__(self, func, types, args=(), kwargs=None):
        """Runs one call of the torch API."""
        kwargs = kwargs or {}
        first = args[0] if args else None
        if func in self._READS and isinstance(first, DeviceTensor):
            return func(on_host(first).clone(), *args[1:], **kwargs)
        if func is self._T.to and isinstance(first, DeviceTensor):
            names = [v for v in (*args[1:], *kwargs.values()) if isinstance(v, str | torch.device)]
            if any(torch.device(n).type == "cpu" for n in names):
                return func(on_host(first).clone(), *args[1:], **kwargs)
        if func is self._T.__getitem__ and isinstance(first, DeviceTensor) and _gathers(args[1]):
            return torch.ops.aten.index.Tensor(first, _indices(first, args[1]))
        return func(*args, **kwargs)


def _gathers(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(isinstance(i, torch.Tensor | list) for i in parts)


def _indices(source: torch.Tensor, index: Any) -> list[torch.Tensor]:
    parts = index if isinstance(index, tuple) else (index,)
    host = [on_host(i) if isinstance(i, DeviceTensor) else torch.as_tensor(i) for i in parts]
    return [tensor._upload(i, source._memory.runtime) for i in host]  # type: ignore[attr-defined]


def main(fds: list[int], options: dict[str, Any]) -> None:
    """Runs one program. The descriptors are the caller, device memory and the program's output."""
    torch.set_num_threads(1)
    report = Channel(socket.socket(fileno=fds[0]))
    sim_memory.map_device(fds[1])
    os.dup2(fds[2], 1)
    os.dup2(fds[2], 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, encoding="utf-8", closefd=False)
    header = report.recv().header
    recorder = Recorder(report.send)
    gpu = SimulatedGpu(options, recorder)
    if options["go_on"]:
        gpu.begin(noop=False, audit=Audit.ON)
    runtime = ScriptRuntime(gpu)
    status, text, detail = 1, "", ""
    try:
        run = _run_hip if header["language"] == "hip" else _run_python
        status = run(header, runtime)
        text = f"the program ended with status {status}" if status else ""
    except BaseException as error:
        text = f"{type(error).__name__}: {error}{_advice(error)}"
        detail = "" if gpu.fault else _trace(error, header["name"])
    if gpu.fault:  # whatever the program made of it
        text = gpu.fault["message"]
    recorder.end(gpu.before + gpu.seconds)
    text = text.replace(os.environ["TMPDIR"] + "/", "")
    report.send({"done": True, "status": status, "error": text, "detail": detail})


def _run_python(header: dict[str, Any], runtime: ScriptRuntime) -> int:
    DeviceTensor.__repr__ = _values  # type: ignore[assignment]
    triton_driver.install(runtime)
    cuda_facade.install(runtime)
    path = os.path.join(os.environ["TMPDIR"], header["name"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(header["source"])
    sys.argv = [header["name"], *header["arguments"]]
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    linecache.checkcache(path)
    try:
        with GuardlessMode(runtime), ReadMode(runtime), ComputeMode(runtime):
            exec(compile(header["source"], path, "exec"), module.__dict__)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _run_hip(header: dict[str, Any], runtime: ScriptRuntime) -> int:
    words = [header["name"], *header["arguments"]]
    status = hip.run_program(header["source"], header["toolchain"], runtime, words)
    ctypes.CDLL(None).fflush(None)
    return status


def _values(value: DeviceTensor, **options: Any) -> str:
    """Formats a device tensor as PyTorch prints it."""
    text = repr(on_host(value))
    return f"{text[:-1]}, device='cuda:0')"


def _advice(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "; a confined program sees no file but its own: try kernel-gym sim -- python FILE"
    return ""


def _trace(error: BaseException, name: str) -> str:
    """The frames of the traceback in the program's own source."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.endswith(name)]
    lines = [f"{name}:{f.lineno} in {f.name}: {f.line}" for f in frames]
    return "\n".join([*lines, str(error)])[-MAX_TRACE:]
