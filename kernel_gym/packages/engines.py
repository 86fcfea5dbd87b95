"""Classes of inference engines that compute a problem's operation, which a package can replace.

The facts are read from the sources of the releases named here. `tests/packages/test_engines.py`
compares them with sources in a folder that KERNEL_GYM_ENGINES names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

VLLM, SGLANG = "vLLM", "SGLang"
RELEASES = {VLLM: "0.33.0", SGLANG: "0.5.23"}
"""The release of each engine whose sources the classes were read from."""


@dataclass(frozen=True)
class EngineClass:
    """A class of an inference engine.

    Attributes:
        module: Its module.
        name: Its name.
        parameters: Parameters of its method `forward_native`, without `self`.
        reads: Attributes that the package reads: parameters, tables and sizes.
        settings: Attributes with the value at which the class computes the package's operation.
            With another value, the engine's own code runs.
    """

    module: str
    name: str
    parameters: tuple[str, ...]
    reads: tuple[str, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)


_VLLM, _SGLANG = "vllm.model_executor.layers", "sglang.srt.layers"
_NORM_READS = ("weight", "variance_epsilon")
_VLLM_NORM = EngineClass(
    f"{_VLLM}.layernorm",
    "RMSNorm",
    ("x", "residual"),
    _NORM_READS,
    {"variance_size_override": None, "has_weight": True},
)
_SGLANG_NORM = EngineClass(
    f"{_SGLANG}.layernorm",
    "RMSNorm",
    ("x", "residual", "post_residual_addition", "quant_linear"),
    _NORM_READS,
    {
        "variance_size_override": None,
        "has_weight": True,
        "fp32_residual": False,
        "override_orig_dtype": None,
        "x_pad_to_multiple": 0,
        "_quant_linear": None,
    },
)
_ROTATION_READS = ("cos_sin_cache", "head_size", "rotary_dim")
CLASSES: dict[str, dict[str, EngineClass]] = {
    "rms_norm": {VLLM: _VLLM_NORM, SGLANG: _SGLANG_NORM},
    "add_rms_norm": {VLLM: _VLLM_NORM, SGLANG: _SGLANG_NORM},
    "layer_norm": {
        VLLM: EngineClass(f"{_VLLM}.layernorm", "LayerNorm", ("x",), ("weight", "bias", "eps")),
        SGLANG: EngineClass(
            f"{_SGLANG}.layernorm",
            "LayerNorm",
            ("x",),
            ("weight", "bias", "variance_epsilon"),
            {"elementwise_affine": True, "use_bias": True},
        ),
    },
    "swiglu": {
        VLLM: EngineClass(f"{_VLLM}.activation", "SiluAndMul", ("x",)),
        SGLANG: EngineClass(f"{_SGLANG}.activation", "SiluAndMul", ("x",)),
    },
    "gelu": {VLLM: EngineClass(f"{_VLLM}.activation", "GELUTanh", ("x",))},
    "relu_squared": {
        VLLM: EngineClass(f"{_VLLM}.activation", "ReLUSquaredActivation", ("x",)),
        SGLANG: EngineClass(f"{_SGLANG}.activation", "ReLU2", ("x",)),
    },
    "rope": {
        VLLM: EngineClass(
            f"{_VLLM}.rotary_embedding.base",
            "RotaryEmbedding",
            ("positions", "query", "key"),
            _ROTATION_READS,
            {"is_neox_style": True},
        ),
        SGLANG: EngineClass(
            f"{_SGLANG}.rotary_embedding.base",
            "RotaryEmbedding",
            ("positions", "query", "key", "offsets", "fused_set_kv_buffer_arg"),
            _ROTATION_READS,
            {"is_neox_style": True},
        ),
    },
}
"""By problem and engine. Their GeluAndMul has the halves of `geglu` in the other order: a copy
would cost more than the kernel saves, so that it is not here."""


def described(problem: str) -> str:
    """Returns a sentence on the classes that a package replaces, or that names none."""
    classes = CLASSES.get(problem, {})
    if not classes:
        return f"no class of {VLLM} or {SGLANG} is known that computes {problem}"
    listed = ", ".join(
        f"{engine} {RELEASES[engine]} ({classes[engine].name})" for engine in classes
    )
    return f"a plug-in of {listed}"
