"""PyTorch extensions in HIP as candidates, in a process that starts no compiler.

They are modules that call `load_inline`, or files in HIP with their own bindings.
The recorder sends the judge the source of the extension. A confined compiler builds it as it
builds every source in HIP, and the recorder imports the library that comes back. Host code of the
extension runs here alone: its launches become steps of the plan, and it has no device.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

import torch

from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import decode
from kernel_gym.sandbox.channel import Channel
from kernel_gym.sandbox.failures import BuildError
from kernel_gym.tasks.embedded import EXTRAS
from kernel_gym.worker.hip.connection import Connection
from kernel_gym.worker.recording.runtime import RecordingRuntime

MODULE = "torch.utils.cpp_extension"
_BINDINGS = "\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{lines}\n}}"


class InlineExtensions:
    """Builds the extension of a candidate.

    Args:
        judge: The pipe, on which the judge waits for the answer to a load.
        runtime: The driver of the recorder.
        code_of: Makes the code that the device takes from assembler text.
    """

    def __init__(
        self, judge: Channel, runtime: RecordingRuntime, code_of: Callable[[bytes], bytes]
    ) -> None:
        self._judge, self._runtime, self._code_of = judge, runtime, code_of
        self._language = ""
        self.connection: Connection | None = None
        """Connection that takes the HIP calls of the extension; None without one."""
        stand_in = ModuleType(MODULE, "PyTorch's functions, as a candidate has them.")
        vars(stand_in).update(load_inline=self.load_inline, load=_load)
        vars(stand_in).update(CUDA_HOME=None, ROCM_HOME=None)
        sys.modules[MODULE] = stand_in
        torch.utils.cpp_extension = stand_in

    @contextlib.contextmanager
    def loading(self, language: str) -> Iterator[None]:
        """Permits an extension while a source is loaded.

        Args:
            language: That of `LoadOnSimulator`.
        """
        self._language = language
        try:
            yield
        finally:
            self._language = ""

    def load_inline(
        self,
        name: str,
        cpp_sources: str | Sequence[str],
        cuda_sources: str | Sequence[str] | None = None,
        functions: str | Sequence[str] | Mapping[str, str] | None = None,
        *,
        extra_cflags: Sequence[str] | None = None,
        extra_cuda_cflags: Sequence[str] | None = None,
        **_: object,
    ) -> ModuleType:
        """Builds and imports an extension, as PyTorch's function does.

        Of the options only the macros among the flags count.

        Raises:
            BuildError: It is not called while the candidate is loaded, or it is called twice, or
                there is no device code.
        """
        self._check(name, cuda_sources)
        flags = [*(extra_cflags or ()), *(extra_cuda_cflags or ())]
        source = inline_source(name, cpp_sources, cuda_sources, functions, flags)
        self._judge.send({"ask": "extension", "source": source})
        message = self._judge.recv()
        told = decode(messages.TellExtension, message.header, message.buffers)
        return self._import(name, told.assembler, told.library)[0]

    def load_built(self, entry: str, assembler: bytes, library: bytes) -> Callable[..., object]:
        """Imports an extension that is a file in HIP, and returns its function.

        Args:
            entry: Name of the function; `forward` is taken, too.
            assembler: The text of its device side.
            library: Its host side, a Python module.

        Raises:
            BuildError: It has no such function.
        """
        module, connection = self._import(messages.EXTENSION_MODULE, assembler, library)
        function = getattr(module, entry, None) or getattr(module, "forward", None)
        if not callable(function):
            names = (
                ", ".join(name for name in vars(module) if not name.startswith("_")) or "nothing"
            )
            text = f"the extension binds no function {entry!r} or 'forward'; it binds {names}"
            raise BuildError(text)
        return connection.watched(function)

    def _import(self, name: str, assembler: bytes, library: bytes) -> tuple[ModuleType, Connection]:
        path = Path(os.environ["TMPDIR"]) / f"{name}.so"
        path.write_bytes(library)
        self.connection = Connection(self._runtime, self._code_of(assembler))
        return _imported(name, path), self.connection

    def _check(self, name: object, device: object) -> None:
        if self._language not in ("", "extension"):
            own = EXTRAS.get(self._language, "Triton")
            raise BuildError(f"load_inline builds HIP: found a task in {own}, expected one in HIP")
        if not self._language:
            raise BuildError("load_inline was called late: call it at the top of the module")
        if self.connection is not None:
            raise BuildError("load_inline was called twice: put all functions in one extension")
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise BuildError(f"load_inline: the name is {name!r}, expected an identifier")
        if not device:
            raise BuildError("load_inline: cuda_sources is empty, expected kernels in HIP")


def inline_source(
    name: str,
    host: str | Sequence[str],
    device: str | Sequence[str] | None,
    functions: str | Sequence[str] | Mapping[str, str] | None,
    flags: Sequence[object] = (),
) -> str:
    """Returns one source with both sides of an extension and its bindings.

    Args:
        name: Name of the module.
        host: Texts in C++.
        device: Texts in HIP.
        functions: Names of the functions that the module has; a mapping also has their docstrings.
        flags: The compiler's flags. Those that define macros become lines of the source.
    """
    words = [str(flag).removeprefix("-D") for flag in flags if str(flag).startswith("-D")]
    macros = [f"#define {word.replace('=', ' ', 1)}" for word in words]
    parts = [f"#define TORCH_EXTENSION_NAME {name}", *macros, *_texts(host), *_texts(device or ())]
    if functions:
        names = [functions] if isinstance(functions, str) else list(functions)
        lines = "\n".join(f'  m.def("{each}", &{each});' for each in names)
        parts.append(_BINDINGS.format(lines=lines))
    return "\n".join(parts) + "\n"


def _texts(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _load(*_: object, **__: object) -> ModuleType:
    """Refuses to build files: a candidate has none.

    Raises:
        BuildError: Always.
    """
    raise BuildError(
        "cpp_extension.load reads files: use load_inline with the sources as texts, or submit the "
        "file itself"
    )


def _imported(name: str, path: Path) -> ModuleType:
    """Imports a library that refers to PyTorch's without naming them."""
    for library in ("libtorch_python.so", "libtorch_cpu.so", "libc10.so"):
        where = Path(torch.__file__).parent / "lib" / library
        ctypes.CDLL(str(where), mode=ctypes.RTLD_GLOBAL)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a path with this suffix always has a loader
    assert spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        missing = str(error).split(":", 1)[-1].strip()
        raise BuildError(f"the extension does not load: {missing}") from None
    sys.modules[name] = module
    return module
