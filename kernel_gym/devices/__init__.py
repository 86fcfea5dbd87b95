"""Where kernels run: names, backends, descriptions, and what each device can do here.

The public names, which are in `__init__.pyi`, are imported on first use (PEP 562): processes of a
simulated GPU have no use for the registry.
"""

from kernel_gym.extras import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
