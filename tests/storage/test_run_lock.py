"""A run folder has one process that plays."""

import subprocess
import sys

import pytest

from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_lock import lock_run

HOLD = """
import sys
from pathlib import Path
from kernel_gym.storage.run_lock import lock_run
lock = lock_run(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_has_gone(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="another process plays a run there"):
            lock_run(tmp_path)
        other.stdin.close()
        other.wait()
    assert lock_run(tmp_path) is lock_run(tmp_path)
