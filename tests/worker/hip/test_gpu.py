"""The compiler's printed facts about a HIP object's kernels are parsed."""

from kernel_gym.worker.hip.gpu import read_resources

PTXAS = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z4copyPfS_l' for 'sm_90a'
ptxas info    : Function properties for _Z4copyPfS_l
    24 bytes stack frame, 16 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 24 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Compile time = 13.262 ms
"""
CLANG = """
k.hip:5:0: remark: Function Name: copy [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     TotalSGPRs: 18 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     VGPRs: 12 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     AGPRs: 4 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     ScratchSize [bytes/lane]: 8 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     SGPRs Spill: 1 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     VGPRs Spill: 2 [-Rpass-analysis=kernel-resource-usage]
k.hip:5:0: remark:     LDS Size [bytes/block]: 1024 [-Rpass-analysis=kernel-resource-usage]
"""


def test_ptxas_is_read():
    (kernel,) = read_resources(PTXAS)
    assert kernel == {
        "name": "_Z4copyPfS_l",
        "vgprs": 40,
        "vgpr_spills": 4,
        "scratch_bytes": 24,
        "lds_bytes": 1024,
    }


def test_clang_is_read():
    (kernel,) = read_resources(CLANG)
    assert kernel == {
        "name": "copy",
        "vgprs": 16,
        "agprs": 4,
        "sgprs": 18,
        "vgpr_spills": 2,
        "sgpr_spills": 1,
        "scratch_bytes": 8,
        "lds_bytes": 1024,
    }


def test_a_log_without_kernels_has_no_facts():
    assert read_resources("warning: nothing here") == []
