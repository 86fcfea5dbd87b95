"""Brings a simulated GPU up in a process of the user, with the settings of its environment."""

from __future__ import annotations

import atexit
import sys
from typing import Any

from kernel_gym.worker.sim.results import Recorder
from kernel_gym.worker.sim.settings import Settings


def start() -> Any:
    """Brings the device up and records what happens on it.

    Returns:
        The driver of the device; None if the environment wants no simulated GPU.

    Raises:
        ImportError: The device cannot be brought up here.
    """
    settings = Settings.from_environment()
    if settings is None:
        return None
    recorder = Recorder.from_environment("python", sys.orig_argv)
    from kernel_gym.worker.sim.adapter import enable

    try:
        runtime = enable(settings, recorder)
    except Exception as error:
        text = f"the simulated GPU could not be brought up: {type(error).__name__}: {error}"
        if recorder is not None:
            recorder.failure(text)
        raise ImportError(f"kernel-gym sim: {text}") from error
    if recorder is not None:
        atexit.register(lambda: recorder.end(runtime.gpu.before + runtime.gpu.seconds))
    return runtime
