"""Notes the kernel that Triton compiles, so that the judge can name it if time ends."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from triton.runtime.jit import JITFunction

from kernel_gym.protocol.compiling import SIZE


class _Options(Protocol):
    """Options of a backend."""

    num_warps: int


def install(descriptor: int) -> None:
    """Notes each compilation on a page of the judge for as long as it lasts.

    Args:
        descriptor: The page's file.
    """
    compile_quietly = JITFunction._do_compile

    def compile_noted(
        kernel: JITFunction,
        key: object,
        signature: object,
        device: object,
        constants: Mapping[tuple[int, ...], object],
        options: _Options,
        *rest: object,
        **named: object,
    ) -> object:
        given = (key, signature, device, constants, options)
        write(descriptor, described(kernel, *given))
        try:
            return compile_quietly(kernel, *given, *rest, **named)
        finally:
            write(descriptor, "")

    JITFunction._do_compile = compile_noted


def write(descriptor: int, text: str) -> None:
    """Replaces the text of the page."""
    os.pwrite(descriptor, text.encode()[:SIZE].ljust(SIZE, b"\0"), 0)


def described(
    kernel: JITFunction,
    key: object,
    signature: object,
    device: object,
    constants: Mapping[tuple[int, ...], object],
    options: _Options,
    *_: object,
    **__: object,
) -> str:
    """Returns the name of a kernel, its whole-number constants and its warps.

    Args:
        kernel: The `JITFunction`; the other arguments are those of `JITFunction._do_compile`.
        key: The key of Triton's own cache.
        signature: The types of the arguments.
        device: The device's number.
        constants: Constants by the place of their parameter.
        options: Options of the backend, with `num_warps`.
    """
    numbers = [
        f"{kernel.arg_names[path[0]]}={value}"
        for path, value in constants.items()
        if type(value) is int and len(path) == 1
    ]
    return f"{kernel.__name__} ({', '.join([*numbers, f'num_warps={options.num_warps}'])})"
