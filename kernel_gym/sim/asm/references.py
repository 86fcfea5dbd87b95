"""Turns the numbers of a linked function back into names: targets of branches, and addresses.

In a linked code object an address is `s_getpc_b64` and an addition of a number, and a branch counts
words. The simulator's program has other addresses, so it wants names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from kernel_gym.sim.asm.code import Encoded
from kernel_gym.sim.asm.data import DataReader
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.text import Function, parse_instruction

_GETPC = re.compile(r"^s_getpc_b64 s\[(\d+):(\d+)\]$")
_ADD = re.compile(r"^s_(addc?)_u32 s(\d+), s(\d+), (-?(?:0x[0-9a-f]+|\d+))$")
_LAST = re.compile(r"-?\d+$")
_LITERALS = {"add": ("lo", 4), "addc": ("hi", 12)}
_WORD = 4


def label_at(address: int) -> str:
    """The name of a place in the code."""
    return f".L_{address:x}"


class References:
    """The names of a code object's places.

    Args:
        bodies: The instructions of all functions.
        functions: Names of functions by address.
        data: The data objects.
    """

    def __init__(
        self,
        bodies: Mapping[str, Sequence[Encoded]],
        functions: Mapping[int, str],
        data: DataReader,
    ) -> None:
        self._functions, self._data = functions, data
        known = {code.address for body in bodies.values() for code in body}
        self._targets = set()
        for body in bodies.values():
            for code in body:
                if code.jump is not None:
                    self._targets.add(code.jump)
            self._targets |= known.intersection(_computed(body))
        self._targets -= functions.keys()

    def function(self, name: str, body: Iterable[Encoded]) -> Function:
        """Returns a function with names for all places."""
        function = Function(name)
        address = _AddressComputation(self._place)
        for code in body:
            text = code.text
            if code.address in self._targets:
                function.labels[label_at(code.address)] = len(function.instructions)
            if code.jump is not None:
                text = _LAST.sub(self._branch(code), text)
            elif text.startswith(("s_getpc", "s_add")):
                text = address.named(code)
            line = code.source
            number, location = (line.line, line.location) if line else (None, None)
            function.instructions.append(
                parse_instruction(text, number, len(code.content), location)
            )
        return function

    def _branch(self, code: Encoded) -> str:
        assert code.jump is not None
        return self._functions.get(code.jump) or label_at(code.jump)

    def _place(self, address: int) -> tuple[str, int] | None:
        """The symbol and the distance from it; None for an address that is nobody's."""
        if address in self._functions:
            return self._functions[address], 0
        if address in self._targets:
            return label_at(address), 0
        return self._data.name_at(address)


class _AddressComputation:
    """Follows one computation: `s_getpc_b64`, then additions of the two halves of a distance.

    Args:
        place: Finds the symbol at an address, and the distance from it.
    """

    def __init__(self, place: Callable[[int], tuple[str, int] | None]) -> None:
        self._place_at = place
        self._register = 0
        self._origin: int | None = None  # the address after s_getpc_b64
        self._place: tuple[str, int] | None = None

    def named(self, code: Encoded) -> str:
        """Returns the text of the next instruction, with a symbol if it adds a part of one."""
        getpc = _GETPC.match(code.text)
        if getpc:
            self._register, self._origin = int(getpc[1]), code.address + _WORD
            self._place = None
            return code.text
        addition = _ADD.match(code.text) if self._origin is not None else None
        if addition is None or self._origin is None:
            return code.text
        kind, source = addition[1], int(addition[3])
        if kind == "add" and source == self._register:
            self._place = self._place_at(self._origin + _signed(addition[4]))
        place = self._place if source == self._register + (kind == "addc") else None
        if kind == "addc":
            self._origin = self._place = None
        return _with_symbol(addition, place) if place else code.text


def _with_symbol(addition: re.Match[str], place: tuple[str, int]) -> str:
    kind, target, source = addition.group(1, 2, 3)
    name, offset = place
    part, after = _LITERALS[kind]
    return f"s_{kind}_u32 s{target}, s{source}, {name}@rel32@{part}+{after + offset}"


def _computed(body: Sequence[Encoded]) -> set[int]:
    """The addresses that `s_getpc_b64` and the next instruction compute."""
    addresses = set()
    for first, second in pairwise(body):
        if not first.text.startswith("s_getpc"):
            continue
        getpc, low = _GETPC.match(first.text), _ADD.match(second.text)
        if getpc and low and low[1] == "add" and low[3] == getpc[1]:
            addresses.add(first.address + _WORD + _signed(low[4]))
    return addresses


def _signed(number: str) -> int:
    """The distance that a lower half stands for: code objects have less than 2 GiB."""
    value = int(number, 0) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


_BY_REGISTER = ("s_cbranch_g_fork", "s_cbranch_join")
"""Branches to an address in registers. The decoder refuses them by name."""


def check_targets(functions: Iterable[Function]) -> None:
    """Checks that each branch ends at an instruction.

    Raises:
        AsmError: One does not.
    """
    functions = list(functions)
    known = {name for function in functions for name in (function.name, *function.labels)}
    for function in functions:
        for instruction in function.instructions:
            if instruction.mnemonic in _BY_REGISTER:
                continue
            if instruction.mnemonic.startswith(("s_branch", "s_cbranch", "s_call")):
                target = instruction.operands[-1]
                if target not in known:
                    raise AsmError(
                        f"{target} is no instruction", instruction.line, instruction.text
                    )
