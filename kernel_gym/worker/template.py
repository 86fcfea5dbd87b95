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
OF_EVALUATIONS = ("recorder", "compiler", "device")
"""Roles whose modules are loaded at once. Those of other roles are loaded before their first fork:
no evaluation of a task of the package waits for them."""


def main() -> None:
    """Loads the libraries, then serves the judge until it is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the judge handles Ctrl-C
    gc.disable()  # searching what imports have made takes a tenth of their time
    for name in (*LIBRARIES, *(ROLES[role].module for role in OF_EVALUATIONS)):
        importlib.import_module(name)
    import torch

    from kernel_gym.worker.preload import warm

    torch.set_num_threads(1)  # no thread pool may exist when children are forked
    warm()
    gc.enable()
    library.prepare()
    serve(control, ROLES)
    os._exit(0)  # skips the exit handlers of libraries, which report what `warm` froze
