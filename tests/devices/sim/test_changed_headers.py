"""The header of old HIP is changed at one place, that of newer HIP not at all."""

from __future__ import annotations

from kernel_gym.devices.sim.changed_headers import changed_headers

OLD = """before
template <typename F>
struct __HIP_Coordinates {
  struct __X {};
};
static constexpr __HIP_Coordinates<__HIP_BlockDim> blockDim{};
after
"""


def write(folder, text):
    """Writes a header as HIP has it."""
    path = folder / "hip" / "amd_detail" / "amd_hip_runtime.h"
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_coordinates_become_numbers(tmp_path):
    write(tmp_path / "hip5", OLD)
    folder = changed_headers(tmp_path / "hip5", tmp_path / "own")
    text = (folder / "hip" / "amd_detail" / "amd_hip_runtime.h").read_text()
    assert "__declspec(property(get = __get_x)) R x;" in text
    assert "struct __X" not in text
    assert text.startswith("before\n")
    assert text.endswith("blockDim{};\nafter\n")


def test_newer_headers_are_left_alone(tmp_path):
    write(tmp_path / "hip6", "struct __hip_builtin_threadIdx_t {};\n")
    assert changed_headers(tmp_path / "hip6", tmp_path / "own") is None
    assert changed_headers(tmp_path / "nothing", tmp_path / "own") is None
