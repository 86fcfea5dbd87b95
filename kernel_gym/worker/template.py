"""The program of the template process: loads all libraries and states what its children can become.

`kernel_gym.worker.__main__` starts it.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Iterator

from kernel_gym.sandbox.template import Role, serve
from kernel_gym.torch_device import library

ROLES = {
    "recorder": Role("kernel_gym.worker.recording.main"),
    "compiler": Role("kernel_gym.worker.hip.compiler"),
    "tracer": Role("kernel_gym.imports.tracing.main", libraries=("torch._dynamo",)),
    "script": Role("kernel_gym.programs.script"),
    "upstream": Role("kernel_gym.imports.upstream.main"),
    "device": Role("kernel_gym.devices.sim.server", confined=False),
}
LIBRARIES = ("numpy", "torch", "triton", "triton.backends.amd.compiler")
FIRST = "recorder"
"""The role whose module is loaded at once: an evaluation of a source in Triton waits for it."""
SPARE = ("device", "compiler")
"""Roles whose modules are loaded while nothing is asked. Those of others are loaded before their
first fork: no evaluation of a task of this package has them."""


def main() -> None:
    """Loads the libraries, then serves the judge until it is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge handles Ctrl-C
    gc.disable()  # searching what imports have made takes a tenth of their time
    for name in (*LIBRARIES, ROLES[FIRST].module):
        importlib.import_module(name)
    import torch

    from kernel_gym.worker.preload import warm

    torch.set_num_threads(1)  # no thread pool may exist when children are forked
    warm()
    gc.enable()
    library.prepare()
    serve(control, ROLES, _in_spare_time())
    os._exit(0)  # skips the exit handlers of libraries, which report what `warm` froze


def _in_spare_time() -> Iterator[None]:
    """Loads what the first child does not need, in steps of at most a tenth of a second."""
    from kernel_gym.sim.asm import disassembler

    for name in ("kernel_gym.sim.engine.engine", *(ROLES[role].module for role in SPARE)):
        importlib.import_module(name)
        gc.freeze()  # a collection in a child would copy the pages of all loaded objects
        yield
    disassembler.knows("gfx942")  # loads LLVM's library for the simulated devices
    yield
