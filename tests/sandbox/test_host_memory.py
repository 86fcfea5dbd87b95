"""Memory of the host and of a container, as the files of a system show them."""

import pytest

from kernel_gym.sandbox.host_memory import available_bytes

GIB = 1 << 30
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"


def system(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({}, 4 * GIB),
        ({f"{V2}/memory.max": "max\n", f"{V2}/memory.current": "5\n"}, 4 * GIB),
        ({f"{V2}/memory.max": f"{3 * GIB}\n", f"{V2}/memory.current": f"{GIB}\n"}, 2 * GIB),
        ({f"{V2}/memory.max": "10\n", f"{V2}/memory.current": "20\n"}, 0),
        (
            {f"{V1}/memory.limit_in_bytes": f"{GIB}\n", f"{V1}/memory.usage_in_bytes": "0\n"},
            GIB,
        ),
    ],
)
def test_the_smaller_of_host_and_container_counts(tmp_path, container, expected):
    host = {"proc/meminfo": f"MemTotal: 9 kB\nMemAvailable: {4 * GIB >> 10} kB\n"}
    assert available_bytes(system(tmp_path, host | container)) == expected


def test_a_system_that_does_not_say(tmp_path):
    assert available_bytes(tmp_path) is None


def test_this_system_has_some():
    available = available_bytes()
    assert available is None or available > 0
