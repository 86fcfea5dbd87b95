"""Registers the environments of this package by name, as soon as Gymnasium is imported.

Importing Gymnasium takes as long as all of `kernel-gym --help`, and most processes have no use for
it. So this package does not import it: code that calls `gymnasium.make` has imported it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_ENVIRONMENTS = {
    "KernelOpt-v0": ("KernelOptEnv", "KernelOptVectorEnv"),
    "KernelTune-v0": ("KernelTuneEnv", "KernelTuneVectorEnv"),
}
"""The classes of one environment and of many, by name."""


def register_with_gymnasium() -> None:
    """Registers the environments now, or when Gymnasium is imported later."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


def _register() -> None:
    import gymnasium

    # A GPU's times differ from run to run, so the registration says that the environments are not
    # deterministic. On the simulator equal seeds give equal observations, rewards and infos.
    for name, (one, many) in _ENVIRONMENTS.items():
        gymnasium.register(
            id=name,
            entry_point=f"kernel_gym.envs:{one}",
            vector_entry_point=f"kernel_gym.envs:{many}",
            nondeterministic=True,
        )


class _AfterGymnasium(MetaPathFinder):
    """Finds Gymnasium as Python does, and has its import end with the registration."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns the module's own spec, once; None for all other modules."""
        if name != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = _followed(spec.loader)  # type: ignore[method-assign, assignment]
        return spec


def _followed(loader: Loader) -> Callable[[ModuleType], None]:
    """Returns a loader's own execution of a module, followed by the registration."""
    execute = loader.exec_module

    def execute_and_register(module: ModuleType) -> None:
        execute(module)
        _register()

    return execute_and_register
