"""Decides which suspicious reads of an audited launch matter, and describes faults in words.

Compilers legally read undefined registers, and let several waves load what one of them updates in
place, and throw the result away. An audited launch therefore only records suspects. Here the launch
runs again with other contents in the suspected storage, or as the result of the suspected load. A
suspect becomes a fault if, and only if, the launch then faults or memory differs afterwards.
"""

from __future__ import annotations

import ctypes as ct
from collections.abc import Iterator, Sequence

from kernel_gym.sim import layouts, native
from kernel_gym.sim.engine.faults import KINDS, Fault, describe, describe_other
from kernel_gym.sim.engine.kernel import Kernel
from kernel_gym.sim.layouts import FaultKind, SuspectKind
from kernel_gym.symbols import plain_name

BEFORE, AFTER = 0, 1  # copies of memory that the engine keeps
FAULTS = {
    SuspectKind.REGISTER_SUSPECT: FaultKind.UNINITIALISED_REGISTER,
    SuspectKind.LDS_SUSPECT: FaultKind.UNINITIALISED_LDS,
    SuspectKind.RACE_SUSPECT: FaultKind.GLOBAL_RACE,
}
"""The fault that each kind of suspect becomes if it matters."""
FILLS = (0x7B7B7B7B, 0xFBFBFBFB, 0x7FC17FC1)
"""Large, large negative, NaN: as f32, f16, bf16 and integers. Registers start as 0, LDS as NaN."""


def read_that_matters(
    library: native.Library, engine: int, program: int, request: layouts.LaunchRequest
) -> layouts.Suspect | None:
    """The first suspect of an audited launch that changes the contents of memory.

    When this returns, memory is as the launch left it.

    Args:
        library: The engine library.
        engine: Handle of the engine, whose last launch was audited.
        program: Handle of the program.
        request: The request of that launch; allocations were kept before it.

    Returns:
        The suspect, or None if none of them matters.
    """
    api = library.api
    reported = api.sim_suspects(engine)
    suspects = [layouts.Suspect.from_buffer_copy(reported[i]) for i in range(request.suspects)]
    api.sim_keep(engine, AFTER)

    def matters(suspect: layouts.Suspect) -> bool:
        return any(_differs(again) for again in _again(request, suspect))

    def _differs(again: layouts.LaunchRequest) -> bool:
        api.sim_restore(engine, BEFORE)
        api.sim_launch(engine, program, ct.byref(again))
        return bool(again.fault_kind) or not api.sim_same(engine, AFTER)

    try:
        return next(filter(matters, suspects), None)
    finally:
        api.sim_restore(engine, AFTER)


def _again(
    request: layouts.LaunchRequest, suspect: layouts.Suspect
) -> Iterator[layouts.LaunchRequest]:
    """Yields launches with other contents of a suspect."""
    for fill in FILLS:
        again = layouts.LaunchRequest.from_buffer_copy(request)
        again.audit = again.sample_count = again.footprint = 0
        again.instructions = again.sharing = 0
        again.fill = fill
        if suspect.kind == SuspectKind.LDS_SUSPECT:
            again.lds_map = suspect.map
        elif suspect.kind == SuspectKind.RACE_SUSPECT:
            again.poison = suspect.map
        else:
            again.fill_row = suspect.place
        yield again


def accuse(request: layouts.LaunchRequest, suspect: layouts.Suspect) -> None:
    """Write a suspect into the request as its fault."""
    request.fault_kind = FAULTS[SuspectKind(suspect.kind)]
    request.fault_instruction = suspect.instruction
    request.fault_wave, request.fault_lane = suspect.wave, suspect.lane
    request.fault_address = suspect.place
    if suspect.kind == SuspectKind.RACE_SUSPECT:
        request.fault_other_instruction = suspect.other_instruction
        request.fault_other_wave = suspect.other_wave
        request.fault_other_workgroup = suspect.workgroup
    grid = request.grid
    across = suspect.workgroup // grid[0]
    request.fault_workgroup[:] = suspect.workgroup % grid[0], across % grid[1], across // grid[1]


def fault_of(
    kernel: Kernel,
    request: layouts.LaunchRequest,
    allocations: Sequence[tuple[int, int, str]],
) -> Fault:
    """The fault that stopped a launch, with the text and source line of the instruction.

    Args:
        kernel: The kernel.
        request: The finished request of the launch.
        allocations: ``(start, size, label)``, sorted by start.
    """
    kind = KINDS[request.fault_kind]
    instruction, source = _place(kernel, request.fault_instruction)
    workgroup = request.fault_workgroup[0], request.fault_workgroup[1], request.fault_workgroup[2]
    what = describe(kind, request.fault_address, request.fault_size, request.lds_size, allocations)
    other_source = ""
    if request.fault_other_instruction < len(kernel.decoded.instructions):
        text, other_source = _place(kernel, request.fault_other_instruction)
        where = request.fault_other_wave, request.fault_other_workgroup
        what = f"{what}; {describe_other(kind, text, other_source, *where)}"
    message = (
        f"{what}; kernel {plain_name(kernel.name)}, {f'{source}, ' if source else ''}"
        f"workgroup {workgroup}, wave {request.fault_wave}, lane {request.fault_lane}: "
        f"{instruction}"
    )
    return Fault(
        kind=kind,
        message=message,
        kernel=kernel.name,
        instruction=instruction,
        source=source,
        workgroup=workgroup,
        wave=request.fault_wave,
        lane=request.fault_lane,
        address=request.fault_address,
        size=request.fault_size,
        other_source=other_source,
    )


def _place(kernel: Kernel, instruction: int) -> tuple[str, str]:
    return kernel.decoded.instructions[instruction].text, kernel.source_of(instruction)
