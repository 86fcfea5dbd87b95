"""Assembles texts for a target, with the LLVM that ships with Triton: it knows all targets.

A text may be hostile, and an assembler opens files, prints, and takes any amount of memory. So it
runs in a process of its own, which cannot open files and has limits. The bytes that it returns are
not trusted: the reader decodes them.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import importlib.util
import os
import re
import resource
import signal
import socket
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym import triton_versions
from kernel_gym.sim.asm.code_cache import CodeCache
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.targets import MAX_CODE_BYTES, target_of

MAX_MEMORY_BYTES = 1 << 29
"""Limit of the memory that the process takes for itself, and of each file that it writes."""
MAX_PROCESSOR_SECONDS = 10
"""Limit of one process. Real texts take milliseconds."""
_TRIPLE = ("amdgcn-amd-amdhsa",)
_LIBRARY = "triton._C.libtriton"
_MAX_MESSAGE_BYTES = 4000
_REQUEST = struct.Struct("<BII")
"""Whether to link, and the bytes of the target and of the text."""
_ANSWER = struct.Struct("<BI")
"""Whether it failed, and the bytes of the code or the message."""
_DIRECTIVE = re.compile(r'^[ \t]*\.amdgcn_target[ \t]+"([^"\n]*)"', re.MULTILINE)
_FEATURE = re.compile(r":(xnack|sramecc)([+-])")
_ERROR = re.compile(r"^(?:text:(\d+):\d+: )?error: (.*)\n?(.*)", re.MULTILINE)
_LINE_MARK = '# 1 "text"\n'
"""Makes the assembler count the lines from here, and name them in its messages."""


def stated_target(text: str) -> str:
    """The target of the first ``.amdgcn_target`` of a text, or the default one.

    The assembler refuses a text that states another one as well.

    Raises:
        AsmError: If it is not one that can be simulated.
    """
    directive = _DIRECTIVE.search(text)
    name = directive.group(1) if directive else ""
    target = target_of(name)
    return target.arch + name.rpartition("-")[2].removeprefix(target.arch)


class Assembler:
    """A process that assembles. It starts with the first text, and again when a text has ended it.

    A simulated GPU has one of its own, so that texts of two candidates never share one.

    Args:
        cache: A folder with code objects of earlier processes; None for no such folder.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = CodeCache(cache, _triton_version()) if cache else None
        self._socket: socket.socket | None = None
        self._child = 0

    def __del__(self) -> None:
        """Ends the process."""
        self.close()

    def close(self) -> None:
        """Ends the process. The next text starts another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            with contextlib.suppress(ChildProcessError):  # someone else has waited for it
                os.waitpid(self._child, 0)

    def code_object(self, text: str) -> bytes:
        """Assembles and links a text for the target that it states.

        Returns:
            A code object, as the loader of a GPU takes it (ELF).

        Raises:
            AsmError: The assembler refuses it. The message is LLVM's, with the line.
        """
        content = text.encode(errors="replace")
        known = self._cache.get(content) if self._cache else None
        if known is None:
            known = self._ask(True, stated_target(text), _LINE_MARK + text)
            if self._cache:
                self._cache.put(content, known)
        return known

    def relocatable(self, text: str, target: str) -> bytes:
        """Assembles a text for a target.

        Returns:
            An object file (ELF).

        Raises:
            AsmError: The assembler refuses it.
        """
        return self._ask(False, target, _LINE_MARK + text)

    def _ask(self, link: bool, target: str, text: str) -> bytes:
        code, name = text.encode(errors="replace"), target.encode()
        if len(code) > MAX_CODE_BYTES:
            raise AsmError(f"a text of {len(code)} bytes, expected at most {MAX_CODE_BYTES}")
        try:
            if self._socket is None:
                self._start()
            assert self._socket is not None
            self._socket.sendall(_REQUEST.pack(link, len(name), len(code)) + name + code)
            failed, size = _ANSWER.unpack(_received(self._socket, _ANSWER.size))
            answer = _received(self._socket, size)
        except (OSError, EOFError):
            self.close()
            raise AsmError("the assembler ended: the text asks for too much") from None
        if failed:
            raise _error(answer.decode(errors="replace"))
        return answer

    def _start(self) -> None:
        if _LIBRARY in sys.modules:
            _triton()  # here, so that every later process has it
        self._socket, other = socket.socketpair()
        self._child = os.fork()
        if self._child == 0:
            try:
                _confine(other.fileno())
                _serve(other)
            finally:
                os._exit(1)
        other.close()


def _error(message: str) -> AsmError:
    error = _ERROR.search(message)
    if error is None:
        return AsmError(message.strip() or "the assembler refuses the text")
    line, what, quoted = error.groups()
    return AsmError(what, int(line) if line else None, quoted.strip())


@cache
def _triton() -> Any:
    """The library of Triton with its LLVM, for all targets.

    A process that does not use Triton loads the library alone, which saves the time of the package.
    """
    library: Any = sys.modules.get(_LIBRARY)
    if library is None:
        package = importlib.util.find_spec("triton")
        if package is None or package.origin is None:
            raise AsmError("Triton is not installed, which assembles texts")
        files = sorted(Path(package.origin).parent.glob("_C/libtriton*.so"))
        spec = importlib.util.spec_from_file_location(_LIBRARY, files[0])
        assert spec is not None
        assert spec.loader is not None
        library = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(library)
    library.llvm.init_targets()
    return library


def _confine(kept: int) -> None:
    """Leaves this process one descriptor besides the standard ones, and little memory and time."""
    gc.disable()  # a collection would copy the pages that are shared with the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    os.closerange(3, kept)
    os.closerange(kept + 1, 1 << 20)
    for what, most in (
        (resource.RLIMIT_DATA, _data_bytes() + MAX_MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, MAX_PROCESSOR_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (value, value))


def _data_bytes() -> int:
    """Private bytes of this process now, which it shares with its parent at first."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def _serve(peer: socket.socket) -> None:
    _triton(), _takes_triple()  # which open files
    files = [os.memfd_create(name) for name in ("object", "code", "messages")]
    os.dup2(files[2], 2)
    while True:
        try:
            link, name, size = _REQUEST.unpack(_received(peer, _REQUEST.size))
            target = _received(peer, name).decode()
            text = _received(peer, size).decode()
        except EOFError:
            return
        for file in files:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
        code = message = b""
        try:
            code = _assembled(text, target)
            if code and link:
                code = _linked(code, files)
        except RuntimeError as error:
            message = str(error).encode(errors="replace")
        if not code:
            message = (_content(files[2]) or message)[:_MAX_MESSAGE_BYTES]
        peer.sendall(_ANSWER.pack(not code, len(code or message)) + (code or message))


def _assembled(text: str, target: str) -> bytes:
    """The object file of a text; empty if LLVM refuses it. It cannot open files meanwhile."""
    arch = target.partition(":")[0]
    features = ",".join(sign + name for name, sign in _FEATURE.findall(target))
    triton = _triton()
    arguments = _TRIPLE if _takes_triple() else ()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        return bytes(triton.amd.assemble_amdgcn(text, *arguments, arch, features))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@cache
def _takes_triple() -> bool:
    return triton_versions.numbers(_triton_version()) >= (3, 9)


@cache
def _triton_version() -> str:
    return importlib.metadata.version("triton")


def _linked(code: bytes, files: list[int]) -> bytes:
    """The code object of an object file; empty if the linker refuses it."""
    os.write(files[0], code)
    standard = os.dup(1)
    os.dup2(files[1], 1)
    try:
        _triton().amd.link_hsaco(f"/proc/self/fd/{files[0]}", "-")
    finally:
        os.dup2(standard, 1)
        os.close(standard)
    return _content(files[1])


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _received(peer: socket.socket, size: int) -> bytes:
    """Exactly so many bytes of the peer.

    Raises:
        EOFError: It has ended.
    """
    content = bytearray(size)
    view = memoryview(content)
    while view:
        count = peer.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return bytes(content)
