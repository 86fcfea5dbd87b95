"""The state of one simulated GPU: memory, loaded kernels, counters and modelled time."""

from __future__ import annotations

import ctypes
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from kernel_gym.devices.audit import Audit
from kernel_gym.devices.operators import Operators
from kernel_gym.devices.sim import memory as sim_memory
from kernel_gym.devices.sim.audits import Audits
from kernel_gym.devices.sim.facts import MAX_KERNELS, CallFacts, describe_kernel, describe_launch
from kernel_gym.devices.sim.kept_memory import Region
from kernel_gym.devices.sim.memory import (
    POISON,
    DeviceMemoryError,
    SimArena,
)
from kernel_gym.devices.sim.observer import Observer, report_missing
from kernel_gym.devices.sim.orders import Orders
from kernel_gym.devices.sim.requests import (
    RefusedError,
    check_geometry,
    check_kernel,
    check_size,
    split,
)
from kernel_gym.devices.sim.sample_draws import SampleDraws
from kernel_gym.hardware import SIMULATED
from kernel_gym.inert import MAX_LINE, inert_object
from kernel_gym.protocol import device as messages
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.protocol.request import Answer
from kernel_gym.sim.engine.engine import (
    Engine,
    Kernel,
    LaunchResult,
    UnsupportedInstruction,
    pack_kernarg,
)
from kernel_gym.sim.engine.faults import AUDIT_KINDS, COMPILER_KINDS
from kernel_gym.sim.engine.host_calls import BUFFER_BYTES, HOST_CALL_ARGUMENT, HostCalls, Write
from kernel_gym.sim.engine.kernarg import Dim3
from kernel_gym.sim.engine.launch_result import MAX_KEPT_BYTES
from kernel_gym.sim.timing.launch_profile import LaunchDescription

INLINE_ASSEMBLER = b"#ASMSTART"
"""LLVM writes this before inline assembler, which has waits of its own."""
UNLIMITED_SECONDS = 1e6
"""A limit of wall time that none reaches."""


class SimulatedGpu:
    """One simulated GPU. Each public method answers a request, see `kernel_gym.protocol.device`.

    Args:
        options: `threads` of the host, `memory` (bytes of the device), `arch`, and optionally
            `launch_limit` (wall seconds of one launch, for programs that no judge watches),
            `launch_instructions` (wave instructions of one launch), `same_samples` (each launch is
            sampled alike), `same_addresses` (each call allocates from the same address),
            `operators` (a value of `Operators`), `permitted` (names of operators, see
            `operators_of_candidate`), `outputs` (their names), `code_cache` (a folder, see
            `Engine`), `kept_limit` (bytes, see `Engine`), `reuse_addresses` (see `SimArena`),
            `code_limit` (of a module), `margin` and `go_on` (see `Engine.launch`), `describes`.
        observer: Is called for each launch, fault and finding.
    """

    def __init__(self, options: dict[str, Any], observer: Observer | None = None) -> None:
        self.observer = observer
        cache = options.get("code_cache")
        self.engine = Engine(options["threads"], code_cache=Path(cache) if cache else None)
        self.engine.set_memory(sim_memory.ARENA_BASE, sim_memory.ARENA_SIZE)
        self.arena = SimArena(options["memory"], options.get("reuse_addresses", False))
        self._same_addresses = options.get("same_addresses", False)
        self.engine.variables.limit = options["memory"]
        self.engine.kept_limit = options.get("kept_limit", MAX_KEPT_BYTES)
        self.spec = SIMULATED[options["arch"]]
        self._launch_seconds = options.get("launch_limit", UNLIMITED_SECONDS)
        self._launch_instructions = options.get("launch_instructions")
        self._same_samples = options.get("same_samples", False)
        self._samples = SampleDraws(alike=self._same_samples)
        self.operators = Operators(options.get("operators", Operators.NONE))
        self.permitted = frozenset(options.get("permitted", ()))
        self._margin, self._code_limit = options.get("margin", 0), options.get("code_limit")
        self._describes = options.get("describes", True)
        """Whether each launch is described, for an observer or the owner of a program."""
        self.output_names: tuple[str, ...] = tuple(options.get("outputs", ()))
        """Names of the outputs of the task, for messages about their memory."""
        self._go_on = AUDIT_KINDS if options.get("go_on") else frozenset()
        self.sample_from(0)
        self.kernels: list[Kernel] = []
        self._compiled: set[int] = set()  # kernels without inline assembler
        self.planned: dict[tuple[bytes, str, int | None], int] = {}
        """Numbers of the kernels that plans have loaded, by code, name and shared memory."""
        self.planned_data: dict[bytes, bytes] = {}
        """The first values of all variables of the code that plans have loaded."""
        self.findings: dict[tuple[str, ...], dict[str, object]] = {}
        """Findings in launches that continued."""
        self._owned: set[int] = set()
        self.print_to: Write | None = None
        """Takes what kernels print. None: kernels that print or assert are refused."""
        self._host_calls: HostCalls | None = None
        self.orders = Orders(self._regions)
        self._allocations_changed = True
        self._counter = 0
        self.before = self.seconds = 0.0
        self.begin(noop=False)

    def sample_from(self, seed: int) -> Answer:
        """Seeds the draws of sampled workgroups and of audited launches."""
        self._samples.seed(seed)
        self._audits = Audits(seed, self._same_samples)
        return messages.Done()

    def begin(
        self,
        noop: bool,
        audit: str = Audit.OFF,
        waits_by_compiler: bool = False,
        tuning: bool = False,
        samples: int | None = None,
    ) -> Answer:
        """Starts a call and clears the counters. With `noop`, kernels are accepted but not run.

        `Audit.AGAIN` repeats the last call with the same samples of workgroups. If the modelled
        time differs then, the draw of the samples is not the reason. With `tuning`, the call
        answers a question of host code: it counts nowhere and changes no draw of a later one. With
        `samples`, the call has that draw of workgroups. A candidate and its baseline have the same
        one, so that equal kernels take equal times.
        """
        if self._same_addresses:
            self.arena.rewind()
        self._waits_by_compiler = waits_by_compiler
        self.noop = noop
        self.audit = Audit(audit)
        self.tuning = tuning
        self._samples.begin(tuning, samples, again=self.audit is Audit.AGAIN)
        self.before += self.seconds
        self.seconds = 0.0
        self.launches: list[LaunchDescription] = []
        self.used = CallFacts(self.spec.arch)
        self._audits.begin(self.audit)
        self.orders.begin()
        self.fault: dict[str, object] | None = None
        self.compiler_fault: dict[str, object] | None = None
        self.host_reads = 0
        self.computed: set[str] = set()
        self.operator_seconds = 0.0
        return messages.Done()

    def end(self) -> Answer:
        """Ends a call and returns the record of it."""
        return messages.CallRecord(
            seconds=self.seconds,
            launches=len(self.launches),
            **self.used.record(self.seconds),
            **self._audits.record(),
            operators=sorted(self.computed),
            operator_seconds=self.operator_seconds,
            fault=self.fault,
            compiler_fault=self.compiler_fault,
            other_order=self.orders.differ,
        )

    def swap_orders(self) -> Answer:
        """Exchanges memory with that of the other order, see `kernel_gym.devices.sim.orders`."""
        self.orders.swap()
        return messages.Done()

    def _regions(self) -> list[Region]:
        live = [(piece.start, piece.size) for piece in self.arena if piece.size]
        return live + self.engine.variables.regions()

    def allocate(self, size: int, label: str | None = None) -> Answer:
        """Allocates poisoned memory."""
        self._counter += 1
        try:
            piece = self.arena.allocate(size, label or f"tensor allocated as #{self._counter}")
        except DeviceMemoryError as error:
            return messages.OutOfMemory(str(error))
        if size:
            ctypes.memset(piece.start, POISON, size)
            self.orders.allocated((piece.start, size))
        self._allocations_changed = True
        return messages.Allocated(piece.start)

    def free(self, address: int) -> Answer:
        """Frees an allocation. An address of no allocation is ignored."""
        if self.arena.free(address):
            self._allocations_changed = True
        return messages.Done()

    def allocate_for_worker(self, size: int, label: str | None = None) -> Answer:
        """Allocates memory for the worker, which chooses neither its place nor its name."""
        answer = self.allocate(size, label)
        if isinstance(answer, messages.Allocated):
            self._owned.add(answer.address)
        return answer

    def free_for_worker(self, address: int) -> Answer:
        """Frees an allocation of the worker.

        Raises:
            RefusedError: The worker has not allocated it.
        """
        if address not in self._owned:
            raise RefusedError("the worker frees what it has not allocated")
        self._owned.discard(address)
        return self.free(address)

    def locate(self, address: int, size: int) -> Answer:
        """Finds the live allocation that holds a range whole."""
        piece = self.arena.locate(address, size)
        if piece is None:
            return messages.LocatedAllocation(None)
        place = messages.AllocatedRange(start=piece.start, size=piece.size, label=piece.label)
        return messages.LocatedAllocation(place)

    def load(self, name: str | None, shared: int | None, code: bytes) -> Answer:
        """Decodes a kernel. The answer describes its arguments and the resources that it uses.

        Raises:
            AsmError: The code does not assemble, or it cannot be decoded.
            RefusedError: The device does not run such a kernel.
        """
        check_size(code, self._code_limit)
        if self.print_to is not None and HOST_CALL_ARGUMENT.encode() in code:
            self._prepare_host_calls(self.print_to)
        try:
            kernel = self.engine.load(code, name, shared)
        except UnsupportedInstruction as error:
            report_missing(self.observer, error, name or "")
            raise
        check_kernel(kernel, self.spec)
        if INLINE_ASSEMBLER not in code:
            self._compiled.add(len(self.kernels))
        self.kernels.append(kernel)
        self._audits.load(code, kernel)
        return messages.LoadedKernel(
            kernel=len(self.kernels) - 1,
            name=kernel.name,
            args=[[a.size, a.value_kind, a.offset] for a in kernel.args],
            registers=kernel.vgprs,
            spills=kernel.vgpr_spills,
            max_workgroup=kernel.max_workgroup,
            total_registers=kernel.total_registers,
            lds=kernel.lds_bytes,
            scratch=kernel.scratch_bytes,
        )

    def _prepare_host_calls(self, write: Write) -> None:
        """Allocates the buffer through which kernels print, when the first one wants to."""
        if self._host_calls is None:
            memory = self.arena.allocate(BUFFER_BYTES, "the buffer for calls of the host").start
            self._host_calls = HostCalls(memory, write)
            self.engine.serve_host_calls(self._host_calls)
            self._allocations_changed = True

    def variable(self, name: str, code: bytes) -> Answer:
        """Finds a device variable of a module."""
        check_size(code, self._code_limit)
        place = self.engine.variable(code, name) or (0, 0)
        return messages.Variable(*place)

    def names(self, code: bytes) -> Answer:
        """Lists the kernels in a module."""
        check_size(code, self._code_limit)
        return messages.Names(self.engine.kernel_names(code))

    def launch(
        self,
        kernel: int,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        sizes: list[int],
        lds: int,
        data: bytes,
    ) -> Answer:
        """Runs a kernel and adds its modelled time to the time of the call.

        Raises:
            RefusedError: The launch is impossible, or it ended with a fault.
        """
        if self.fault:
            raise RefusedError(f"the device is in error: {self.fault['message']}")
        code = self._kernel(kernel)
        check_geometry(code, grid, block, lds, self.spec)
        if 0 in grid:
            return messages.Done()
        if self.noop:
            self.launches.append({"kernel": kernel})
            return messages.Done()
        if self._allocations_changed:
            self.engine.set_allocations([(a.start, a.size, a.label) for a in self.arena])
            self._allocations_changed = False
        self.used.begin(code, block[0] * block[1] * block[2], code.lds_bytes + lds)
        buffer = self._host_calls.buffer if self._host_calls else 0
        kernarg = pack_kernarg(code, split(data, sizes), grid, block, lds, buffer)
        by_compiler = self._waits_by_compiler and kernel in self._compiled
        go_on = self._go_on | (COMPILER_KINDS if by_compiler else frozenset())
        result, audited = self._run(code, (grid, block, kernarg), lds, go_on)
        self._look_at(result)
        self.used.end(code, result)
        if not self.tuning:
            self._audits.launch(kernel, code, audited)
        self.seconds += result.seconds or 0.0
        if self._describes:
            self._note(describe_launch(kernel, code, grid, block, lds, result))
        else:
            self.launches.append({"kernel": kernel})
        return messages.Done()

    def _run(
        self, code: Kernel, shape: tuple[Dim3, Dim3, bytes], lds: int, go_on: frozenset[str]
    ) -> tuple[LaunchResult, bool]:
        """Runs a launch. Returns its result, and whether it was audited."""
        options: dict[str, Any] = {
            "dynamic_lds": lds,
            "time_limit_s": self._launch_seconds,
            "instruction_limit": self._launch_instructions,
            "margin": self._margin,
            "go_on": go_on,
        }

        def run(**more: object) -> LaunchResult:
            return self.engine.launch(code, *shape, **(options | more))

        seed = self._samples.draw()
        if self.tuning:
            return run(sample_seed=seed), False
        audited = self._audits.draw(code)
        paid = {"sample_seed": seed, "audit": audited}
        if self.orders.differ or (self._audits.pays and not audited):
            result, audited_again = self.orders.launch(run, **paid)
            return result, audited or audited_again
        return run(**paid, reverse_waves=self.audit is Audit.REVERSED), audited

    def facts(self) -> Answer:
        """Describes the kernels of the last call, or all loaded ones when it launched none."""
        described = self.used.described() or [describe_kernel(k) for k in self.kernels]
        return messages.CompiledFacts(described[:MAX_KERNELS])

    def _look_at(self, result: LaunchResult) -> None:
        """Keeps what was found in a launch.

        Raises:
            RefusedError: A fault has stopped it.
        """
        for finding in result.findings:
            fields = inert_object(asdict(finding), text=MAX_LINE)
            self._find(fields)
            if self._waits_by_compiler and finding.kind in COMPILER_KINDS:
                self.compiler_fault = self.compiler_fault or fields
        if result.fault:
            self.fault = inert_object(asdict(result.fault), text=MAX_LINE)
            if self.observer:
                self.observer.fault(self.fault)
            raise RefusedError(result.fault.message)

    def _note(self, launch: LaunchDescription) -> None:
        if self.observer:
            self.observer.launch(launch, self.before + self.seconds)
        else:
            self.launches.append(launch)

    def _find(self, finding: dict[str, object]) -> None:
        """Keeps a finding, once for each place."""
        place = tuple(str(finding[key]) for key in ("kind", "kernel", "source", "other_source"))
        if self.findings.setdefault(place, finding) is finding and self.observer:
            self.observer.finding(finding)

    def _kernel(self, index: int) -> Kernel:
        if not 0 <= index < len(self.kernels):
            raise RefusedError(f"no kernel {index} is loaded")
        return self.kernels[index]

    def is_live(self, address: int, size: int) -> bool:
        """Whether a range lies within one allocation, or within the variables of a module."""
        allocated = self.arena.locate(address, size) is not None
        return allocated or self.engine.variables.hold(address, size)

    def tensor(self, described: TensorOnDevice, written: bool = False) -> torch.Tensor:
        """Returns a tensor over live memory of the device.

        Raises:
            RefusedError: It does not lie within one allocation, or cannot be written.
        """
        if written and described.repeats:
            raise RefusedError("writing to a tensor whose elements share memory")
        if described.nbytes > self.arena.capacity:
            raise RefusedError("a tensor larger than the device's memory")
        if described.extent and not self.is_live(described.address, described.extent):
            raise RefusedError("a tensor that does not lie within one allocation")
        shape, strides = list(described.shape), list(described.strides)
        return sim_memory.device_tensor(described.address, shape, strides, described.dtype)
