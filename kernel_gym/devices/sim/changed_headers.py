"""HIP's headers for compilers and programs that are newer than they are.

Three things differ between HIP 5 and 6. `threadIdx.x` is an object in HIP 5, which clang 18 and
newer refuse as an argument of `printf`; in HIP 6 it is a number. The members of `__half2` are the
bits in HIP 5, so `float(pair.x)` is silently another value; in HIP 6 they are halves. HIP 5
declares `wall_clock64` for the device alone, so no kernel can call it. Changed copies of the
headers go to the cache; nothing else is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HeaderChange:
    """A part of a header and what replaces it.

    Attributes:
        file: The header, below the folder of `hip/hip_runtime.h`.
        begin: The text with which the part begins.
        end: The text before which it ends.
        text: What stands there instead.
    """

    file: str
    begin: str
    end: str
    text: str


_COORDINATES = """template <typename F>
struct __HIP_Coordinates {
  using R = decltype(F{}(0));
  __declspec(property(get = __get_x)) R x;
  __declspec(property(get = __get_y)) R y;
  __declspec(property(get = __get_z)) R z;
  __device__ static R __get_x() noexcept { return F{}(0); }
  __device__ static R __get_y() noexcept { return F{}(1); }
  __device__ static R __get_z() noexcept { return F{}(2); }
  __device__ operator dim3() const { return dim3(F{}(0), F{}(1), F{}(2)); }
};
extern "C" __device__ __attribute__((const)) size_t __ockl_get_global_size(uint);
__device__ long long int wall_clock64();

"""
_HALVES = """struct {
                    __half x;
                    __half y;
                };
            };

"""
CHANGES = (
    HeaderChange(
        "hip/amd_detail/amd_hip_runtime.h",
        "template <typename F>\nstruct __HIP_Coordinates {",
        "static constexpr __HIP_Coordinates<__HIP_BlockDim> blockDim{};",
        _COORDINATES,
    ),
    HeaderChange(
        "hip/amd_detail/amd_hip_fp16.h",
        "struct {\n                    unsigned short x;\n                    unsigned short y;",
        "            // CREATORS\n            __HOST_DEVICE__\n            __half2() = default;",
        _HALVES,
    ),
)


def changed_headers(headers: Path, folder: Path) -> Path | None:
    """Writes changed headers into a folder that compilers search first.

    Args:
        headers: The folder that holds `hip/hip_runtime.h`.
        folder: Where the copies go.

    Returns:
        The folder to search; None if the headers need no change.
    """
    needed = [_write(change, headers, folder) for change in CHANGES]
    return folder if any(needed) else None


def _write(change: HeaderChange, headers: Path, folder: Path) -> bool:
    original = headers / change.file
    if not original.exists():
        return False
    text = original.read_text(encoding="utf-8")
    begin, end = text.find(change.begin), text.find(change.end)
    if not 0 <= begin < end:
        return False
    changed = text[:begin] + change.text + text[end:]
    target = folder / change.file
    if not target.exists() or target.read_text(encoding="utf-8") != changed:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(changed, encoding="utf-8")
    return True
