"""Starts the template process: `python -m kernel_gym.worker FD`, where FD is its end of the pipe.

The simulated GPU's device for PyTorch must be loaded before PyTorch, which the template imports.
"""

import sys

from kernel_gym.torch_device import build, library

if __name__ == "__main__":
    try:
        library.load_before_torch()
    except build.DeviceBuildError as error:  # real GPUs need no such device
        print(f"kernel-gym: no simulated GPU: {error}", file=sys.stderr)
    from kernel_gym.worker import template

    template.main()
