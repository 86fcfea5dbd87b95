"""Reinforcement-learning environments for GPU-kernel optimisation on AMD GPUs.

Importing the package registers its Gymnasium environments by name, as soon as Gymnasium is imported
too. It loads neither PyTorch nor a device: the public names, which are in `__init__.pyi`, are
imported on first use (PEP 562).

Example:
    >>> import kernel_gym
    >>> task = kernel_gym.get_task("triton2triton/softmax")
    >>> evaluation = kernel_gym.evaluate(task, "not a kernel", device="sim:gfx942", seed=0)
    >>> str(evaluation.outcome)
    'compile_error'
    >>> kernel_gym.get_reward("kernel-opt")(evaluation).value
    0.02
"""

from kernel_gym.extras import attach
from kernel_gym.registration import register_with_gymnasium

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach(__name__, __file__)

register_with_gymnasium()
