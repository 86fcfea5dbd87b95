"""HIP's headers for compilers that are newer than they are.

`threadIdx.x` is an object in HIP 5, which clang 18 and newer refuse as an argument of `printf`. In
HIP 6 it is a number. A changed copy of the header goes to the cache; nothing else is copied.
"""

from __future__ import annotations

from pathlib import Path

_CHANGED = Path("hip") / "amd_detail" / "amd_hip_runtime.h"
_BEGIN = "template <typename F>\nstruct __HIP_Coordinates {"
_END = "static constexpr __HIP_Coordinates<__HIP_BlockDim> blockDim{};"
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

"""


def changed_headers(headers: Path, folder: Path) -> Path | None:
    """Writes the changed header into a folder that compilers search first.

    Args:
        headers: The folder that holds `hip/hip_runtime.h`.
        folder: Where the copy goes.

    Returns:
        The folder to search; None if the headers need no change.
    """
    original = headers / _CHANGED
    if not original.exists():
        return None
    text = original.read_text(encoding="utf-8")
    begin, end = text.find(_BEGIN), text.find(_END)
    if not 0 <= begin < end:
        return None
    changed = text[:begin] + _COORDINATES + text[end:]
    target = folder / _CHANGED
    if not target.exists() or target.read_text(encoding="utf-8") != changed:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(changed, encoding="utf-8")
    return folder
