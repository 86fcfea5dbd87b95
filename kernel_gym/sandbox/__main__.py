"""Starts the template process: `python -m kernel_gym.sandbox FD`.

The simulated GPU's device for PyTorch must be loaded before PyTorch, which the template imports.
"""

from kernel_gym.torch_device.library import load_before_torch

if __name__ == "__main__":
    load_before_torch()
    from kernel_gym.sandbox import template

    template.main()
