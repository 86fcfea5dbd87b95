"""Pins what ROCm receives. No AMD GPU is here, and only this data differs from CUDA."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices.gpu import vendors
from kernel_gym.devices.gpu.vendors import (
    CUDA,
    ROCM,
    arch_name,
    data_sheet,
    device_files,
    gpu_file,
    languages_of,
    missing_compiler,
)
from kernel_gym.devices.sim import toolchain
from kernel_gym.devices.sim.toolchain import HipToolchain


def test_rocm_calls_hip_with_wavefronts_of_64():
    assert (ROCM.library, ROCM.backend) == ("libamdhip64.so", "hip")
    assert ROCM.wavefront == 64
    assert ROCM.visible == ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
    assert (*ROCM.device_files, ROCM.gpu_files) == ("/dev/kfd", "/dev/dri/renderD*")
    assert ROCM.environment == ()


def test_architectures_have_the_compilers_names():
    rocm = SimpleNamespace(gcnArchName="gfx942:sramecc+:xnack-")
    assert arch_name(ROCM, rocm) == "gfx942"
    assert arch_name(CUDA, SimpleNamespace(major=9, minor=0)) == "sm_90a"
    assert arch_name(CUDA, SimpleNamespace(major=8, minor=0)) == "sm_80"


def test_hip_is_for_amd_where_its_compiler_is(monkeypatch):
    chain = object.__new__(HipToolchain)
    monkeypatch.setattr(vendors, "hip_toolchain", lambda arch: chain)
    assert languages_of(ROCM, "gfx942") == ("triton", "hip")
    assert languages_of(CUDA, "sm_90a") == ("triton",)
    monkeypatch.setattr(vendors, "hip_toolchain", toolchain.hip_toolchain)
    assert languages_of(ROCM, "gfx1100") == ("triton",)
    assert missing_compiler(ROCM, "gfx1100").problem == "HIP is not built for gfx1100"
    assert missing_compiler(CUDA, "sm_90a") is None


@pytest.mark.parametrize(
    ("name", "arch", "flush", "bandwidth"),
    [
        ("AMD Instinct MI300X", "gfx942", 512 << 20, 5.3e12),
        ("AMD Instinct MI325X", "gfx942", 512 << 20, 6.0e12),
        ("NVIDIA H200", "sm_90a", 128 << 20, 4.8e12),
        ("NVIDIA H100 80GB HBM3", "sm_90a", 128 << 20, 3.35e12),
    ],
)
def test_data_sheets_are_found_by_the_reported_name(name, arch, flush, bandwidth):
    sheet = data_sheet(name)
    assert (sheet.arch, sheet.flush_bytes, sheet.memory_bandwidth) == (arch, flush, bandwidth)
    assert sheet.matrix_rate[torch.bfloat16] < 1.5e15  # dense, not the figure with sparsity


def test_what_a_gpu_says_of_itself_becomes_data():
    shared = {"name": "a GPU", "multi_processor_count": 304, "uuid": object()}
    amd = SimpleNamespace(**shared, gcnArchName="gfx942:sramecc+", major=9, minor=4)
    result = vendors.reported(ROCM, amd)
    assert result["target"] == ["hip", "gfx942", 64]
    assert (result["multi_processor_count"], result["warp_size"]) == (304, 64)
    assert result["shared_memory"] == 48 << 10  # when neither name for it is known
    nvidia = SimpleNamespace(**shared, major=9, minor=0, shared_memory_per_block_optin=227 << 10)
    result = vendors.reported(CUDA, nvidia)
    assert (result["target"], result["shared_memory"]) == (["cuda", 90, 32], 227 << 10)
    json.dumps(result)


def test_a_gpu_without_a_data_sheet_has_none():
    assert data_sheet("GeForce 256") is None


@pytest.fixture
def root(tmp_path):
    """A machine with two GPUs, the second of which says nothing of its file."""
    own = "Model: \t NVIDIA H200\nVideo BIOS:\nGPU UUID: \t GPU-one\nDevice Minor: \t 12\n"
    for address, text in (("0000:c1:00.0", own), ("0000:c2:00.0", "GPU UUID: \t GPU-two\n")):
        folder = tmp_path / "proc/driver/nvidia/gpus" / address
        folder.mkdir(parents=True)
        (folder / "information").write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("uuid", "file"),
    [("GPU-one", "/dev/nvidia12"), ("GPU-two", ""), ("GPU-part-of-one", ""), ("", "")],
)
def test_the_driver_says_which_file_belongs_to_a_gpu(root, uuid, file):
    assert gpu_file(CUDA, uuid, root) == file


def test_a_worker_of_amd_opens_the_files_of_all_gpus(root):
    assert gpu_file(ROCM, "GPU-one", root) == ""


@pytest.mark.parametrize(("own", "gpus"), [("x1", ["x1"]), ("", ["x0", "x1"])])
def test_files_of_all_gpus_are_opened_where_its_own_is_not_known(tmp_path, own, gpus):
    for name in ("control", "x0", "x1", "y"):
        (tmp_path / name).touch()
    files = {"device_files": (f"{tmp_path}/c*",), "gpu_files": f"{tmp_path}/x[0-9]*"}
    result = device_files(replace(CUDA, **files), own and f"{tmp_path}/{own}")
    assert result == tuple(f"{tmp_path}/{name}" for name in ("control", *gpus))
