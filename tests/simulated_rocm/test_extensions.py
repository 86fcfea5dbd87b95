"""PyTorch's extension functions build HIP for the simulated GPU of the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain

SOURCE = Path(__file__).with_name("host_runtime") / "extension.hip"
RUN = """
import struct, sys
import kernel_gym
runtime = kernel_gym.enable_simulation(threads=1).runtime
import torch.utils.cpp_extension as extensions
from kernel_gym.simulated_rocm.extensions import ExtensionError
source, folder = sys.argv[1:]
module = extensions.load("extension", [source], build_directory=folder)
address = runtime.allocate(256)
runtime.upload(address, struct.pack("<64f", *range(64)))
assert module.run(address, 3.0) == 0
values = struct.unpack("<64f", runtime.download(address, 256))
assert values == tuple(3.0 * i + 0.5 for i in range(64)), values
assert runtime.gpu.launches[0]["name"].startswith("_Z5scale")
assert extensions.load("extension", [source], build_directory=folder).run(address, 1.0) == 0
assert module.run(address + 4, 1.0) == 719
try:
    extensions.load("broken", [source], ["-x"], ["-DPyInit_extension=1+"], build_directory=folder)
except ExtensionError as error:
    assert "error:" in str(error)
else:
    raise SystemExit("a broken extension was built")
"""


def test_an_extension_runs_on_the_gpu_of_the_process(tmp_path):
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(SOURCE), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


INLINE = """
import sys
import kernel_gym
kernel_gym.enable_simulation(threads=1)
import torch
assert "torch.utils.cpp_extension" not in sys.modules
from torch.utils.cpp_extension import load_inline
device = '''
__global__ void scale_kernel(float* x, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
void scale(torch::Tensor x, double factor) {
  scale_kernel<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), factor, x.numel());
}
'''
module = load_inline(
    "scaling", "void scale(torch::Tensor x, double factor);", device, ["scale"],
    build_directory=sys.argv[1],
)
x = torch.arange(100.0, device="cuda")
module.scale(x, 3.0)
assert torch.equal(x.cpu(), 3 * torch.arange(100.0)), x
"""


@pytest.mark.sweep
def test_an_inline_extension_works_on_tensors_of_an_enabled_gpu(tmp_path):
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    done = subprocess.run(
        [sys.executable, "-c", INLINE, str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr


CUDA_NAMES = """
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAApplyUtils.cuh>
#include <c10/cuda/CUDAStream.h>
void launch(hipStream_t stream);
extern "C" int run() {
  cudaStream_t stream = at::cuda::getCurrentCUDAStream().stream();
  launch(stream);
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess;
}
"""
BUILD_NAMES = """
import sys
from pathlib import Path
from kernel_gym.simulated_rocm import extensions
source = Path(sys.argv[1]) / "source.cpp"
words = [*extensions._common("names"), "-O0", "-x", "c++", "-c", str(source)]
print(extensions._once(words, [source], source.parent, ".o").stat().st_size)
"""


@pytest.mark.slow
def test_host_code_may_use_names_of_cuda(tmp_path):
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    (tmp_path / "source.cpp").write_text(CUDA_NAMES)
    words = [sys.executable, "-c", BUILD_NAMES, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


HEADER = """
import sys
from pathlib import Path
from kernel_gym.simulated_rocm import extensions
folder = Path(sys.argv[1])
source, header, nested = folder / "source.hip", folder / "first.h", folder / "second.h"
source.write_text('#include "first.h"\\nextern "C" int answer() { return ANSWER; }\\n')
header.write_text('#include "second.h"\\n')
outputs = []
for text in ("#define ANSWER 1", "#define ANSWER 2", "#define ANSWER 2"):
    nested.write_text(text)
    object_file = extensions._once(["-fPIC", "-c", str(source)], [source], folder, ".o")
    outputs.append((object_file.read_bytes(), object_file.stat().st_mtime_ns))
assert outputs[0][0] != outputs[1][0], "the edited header was ignored"
assert outputs[1] == outputs[2], "nothing changed and the compiler ran again"
"""


def test_an_edited_header_builds_the_extension_again(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", HEADER, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("part", ["fp8", "bf16"])
def test_headers_are_found_by_the_names_of_hip_6(tmp_path, part):
    source = tmp_path / "source.hip"
    source.write_text(f"#include <hip/amd_detail/amd_hip_{part}.h>\n")
    program = """
import sys
from pathlib import Path
from kernel_gym.simulated_rocm.extensions import _once
source = Path(sys.argv[1])
_once(["-c", str(source)], [source], source.parent, ".o")
"""
    done = subprocess.run([sys.executable, "-c", program, str(source)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_its_error_can_be_read_in_a_process_that_built_nothing():
    """A pool's parent unpickles the error and so imports the module first."""
    program = """
import pickle, sys
import kernel_gym
kernel_gym.enable_simulation(threads=1)
import torch
assert "kernel_gym.simulated_rocm.extensions" not in sys.modules
text = b"ckernel_gym.simulated_rocm.extensions\\nExtensionError\\n(Vtext\\ntR."
assert str(pickle.loads(text)) == "text"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
