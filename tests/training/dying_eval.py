"""`kernel-gym`, killed in the middle of writing a result: dying_eval.py NUMBER PIDS ARGUMENTS...

NUMBER is the submission whose line is torn. PIDS is a file that gets the processes of the family,
one a line.
"""

import os
import signal
import sys
from pathlib import Path

from kernel_gym.cli import app
from kernel_gym.storage.run_store import RESULTS, RunStore

number, pids, *arguments = sys.argv[1:]
append, written = RunStore.append, []


def family(pid):
    """A process and its descendants."""
    pids = [pid]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            pids += family(int(stat.parent.name))
    return pids


def dying_append(self, record, source):
    written.append(record)
    if len(written) == int(number):
        with (self.folder / RESULTS).open("a", encoding="utf-8") as results:
            results.write(record.model_dump_json()[:-40])
        Path(pids).write_text("\n".join(map(str, family(os.getpid()))))
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, record, source)


RunStore.append = dying_append
app(arguments)
