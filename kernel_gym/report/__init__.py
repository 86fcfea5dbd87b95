"""The report: one self-contained HTML file that shows a run.

The public names are in `__init__.pyi` and are imported on first use. `kernel-gym sim` writes pages
without PyTorch, which takes seconds to load and which the figures of a run need.
"""

from kernel_gym.extras import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
