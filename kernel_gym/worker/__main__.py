"""Starts the template process: `python -m kernel_gym.worker FD`, where FD is its end of the pipe.

Host code of candidates runs without a GPU, for simulated and real ones alike. Its `cuda:0` is our
device for PyTorch, which must be loaded before PyTorch, which the template imports.
"""

import sys

from kernel_gym.torch_device import build, library

if __name__ == "__main__":
    try:
        library.load_before_torch()
    except build.DeviceBuildError as error:  # other roles than the recorder need no such device
        print(f"kernel-gym: no candidate can be recorded: {error}", file=sys.stderr)
    from kernel_gym.worker import template

    template.main()
