"""States what FastKernels' registry of captured calls leaves out, for each operation by its name.

What is stated comes from the suite's own models at levels 3 and 4 (Flux, YOLOv10, Oasis, GLA,
Qwen3-VL, BGE-M3), and from Llama-3. Values are plain data. `{"namespace": {...}}` stands for a
configuration with attributes, and `{"class": NAME, "given": {...}}` for a module of the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

IMAGE = 4
"""Sizes in the shape of images: batch, channels, height, width."""
Call = dict[str, Any]
_ENCODER = {"hidden_size": 1024, "intermediate_size": 4096, "layer_norm_eps": 1e-5}
_BGE_M3 = _ENCODER | {
    "max_position_embeddings": 8194,
    "pad_token_id": 1,
    "type_vocab_size": 1,
    "vocab_size": 250002,
}
_PIXELS = {"dim": 32, "freqs_for": "pixel", "max_freq": 256}
_TIMES = {"dim": 64, "freqs_for": "lang"}


def _rotary(given: Mapping[str, object]) -> dict[str, object]:
    return {"class": "OasisRotaryEmbedding", "given": dict(given)}


LEFT_OUT: Mapping[str, Mapping[str, object]] = {
    "ada_layer_norm_continuous": {"conditioning_embedding_dim": 3072, "elementwise_affine": False},
    "conv2d": {"out_channels": 1, "kernel_size": 1},
    "embedding": {"num_embeddings": 128256, "embedding_dim": 4096},
    "encoder_embeddings": {"config": {"namespace": _BGE_M3}},
    "encoder_mlp": {"config": {"namespace": _ENCODER}},
    "flux_attention": {"dim_head": 128, "bias": True},
    "gla_mlp": {"intermediate_size": 6912},
    "llama_mlp": {"config": None, "hidden_size": 4096, "intermediate_size": 14336},
    "mrope": {"max_position_embeddings": 4096, "rope_theta": 5e6},
    "oasis_final_layer": {"patch_size": 2, "out_channels": 16},
    "oasis_patch_embed": {"embed_dim": 1024},
    "oasis_spatial_axial_attention": {"dim_head": 64, "rotary_emb": _rotary(_PIXELS)},
    "oasis_temporal_axial_attention": {"dim_head": 64, "rotary_emb": _rotary(_TIMES)},
    "oasis_timestep_embedder": {"hidden_size": 1024},
    "parallel_linear": {"output_size": 3072},
    "rotary_emb": {"max_position_embeddings": 8192, "rope_theta": 5e5},
    "timestep_embedding": {"embedding_dim": 3072, "pooled_projection_dim": 768},
    "vision_patch_merger": {"d_model": 4096},
    "vision_patch_embed": {"patch_size": 16, "temporal_patch_size": 2, "in_channels": 3},
    "yolov10_scdown": {"c2": 128, "k": 3, "s": 2},
}
"""Parameters of constructors that the registry leaves out, and no shape shows."""

CLASSES: Mapping[str, str] = {
    "ada_layer_norm": "AdaLayerNormZeroSingle",
    "encoder_embeddings": "XLMRobertaEmbeddings",
}
"""Classes that neither a name nor a call tells. The first takes text and image of Flux together,
and the captured calls have 4096 + 512 and 1024 + 512 tokens. The second has BGE-M3's only type of
tokens."""

ALIASES: Mapping[str, Mapping[str, str]] = {"flux_attention": {"FP32RMSNorm": "T5LayerNorm"}}
"""Names that a reference uses and does not define. Its baseline imports the class so."""

METHODS: Mapping[str, str] = {"mrope": "forward_native_2d"}
"""The method with the operation in PyTorch, where `forward` launches a Triton kernel."""

_POSITIONS: Mapping[str, int] = {"chunk_retention": 1}
"""The place of the positions in shapes with as many channels. They are an axis of their own."""

PRODUCTS: Mapping[str, Sequence[str]] = {"oasis_vae_attention": ("frame_height", "frame_width")}
"""Parameters of constructors whose product is a size of the inputs."""

_STEPPED = frozenset({"gla_attention"})
"""Operations whose reference takes a step of Python for each position."""

_BOUNDS: Mapping[str, Sequence[str]] = {
    "input_ids": ("num_embeddings", "vocab_size"),
    "position_ids": ("max_position_embeddings",),
    "positions": ("max_position_embeddings",),
    "x": ("num_classes",),
}
"""Parameters and arguments that say how many values an integer input has."""
_TIMESTEPS = {"t": 50, "timestep": 50}
"""Noise levels of diffusion models. Angles of larger ones differ between fp32 and fp64."""

_WIDTHS = frozenset(
    "hidden_size in_features out_features dim embed_dim embedding_dim hidden_features "
    "num_embeddings context_dim input_size".split()
)
"""Parameters of classes that are the last size of an input, or may be as large."""
_CHANNELS = frozenset({"in_channels", "out_channels", "num_features", "c1", "c2", "ed"})
_SIDES = {"in_chans": 1, "img_height": 2, "img_width": 3}
"""Parameters of classes of images that are a size of the input, by its place."""

_INNER = frozenset(
    "d_model embed_dim embedding_dim hidden_size intermediate_size max_position_embeddings "
    "num_embeddings output_size vocab_size".split()
)
"""Parameters of classes that are sizes of parameters alone. They vary as the sizes of inputs do."""


def inner_sizes(init: Mapping[str, Any]) -> list[int]:
    """Returns the sizes of parameters alone, among the arguments of a constructor."""
    known = {**(init.get("config") or {}).get("namespace", {}), **init}
    return [n for name, n in known.items() if name in _INNER and type(n) is int]


def from_shape(inputs: Mapping[str, object], missing: set[str]) -> dict[str, int]:
    """Returns parameters that the registry leaves out and a shape shows.

    The shape is that of the input `x` or `hidden_states`, else of the first real input. Images have
    their channels first, so that their `dim` is the second size.

    Args:
        inputs: The captured inputs: tensors as `shape` and `dtype`, and other values.
        missing: The parameters.
    """
    tensors = {name: one for name, one in inputs.items() if isinstance(one, dict)}
    real = {name: one for name, one in tensors.items() if "float" in one["dtype"]} or tensors
    main = [one for name, one in real.items() if name in ("x", "hidden_states")]
    shape = (main or list(real.values()))[0]["shape"]
    values = dict.fromkeys(missing & _WIDTHS, shape[-1] if shape else 1)
    image = len(shape) == IMAGE
    channels = (_CHANNELS | {"dim"} if image else _CHANNELS) & missing
    values |= dict.fromkeys(channels, shape[1] if len(shape) > 1 else 1)
    return values | {n: shape[at] for n, at in _SIDES.items() if image and n in missing}


def sized_by_images(taken: set[str]) -> set[str]:
    """Returns the parameters of a class that are sizes of images, also those with a default."""
    return taken & _SIDES.keys()


def prepared(stem: str, calls: list[Call]) -> list[Call]:
    """Returns the calls that can be traced, with what the tables above say of the operation."""
    if stem in _STEPPED:
        calls = [one for one in calls if one["inputs"]["hidden_states"]["shape"][1] == 1]
    more: Call = {"aliases": dict(ALIASES[stem])} if stem in ALIASES else {}
    more |= {"method": METHODS[stem]} if stem in METHODS else {}
    more |= {"positions": _POSITIONS[stem]} if stem in _POSITIONS else {}
    more |= {"product": list(PRODUCTS[stem])} if stem in PRODUCTS else {}
    return [{**one, **more} for one in calls]


def bound_of(name: str, call: Call) -> int:
    """Returns how many values an integer input has, from zero; two where nothing says it."""
    config = call["init"].get("config") or {}
    known = {**config.get("namespace", {}), **call["inputs"], **call["init"]}
    bounds = (known.get(one) for one in _BOUNDS.get(name, ()))
    return next((one for one in bounds if type(one) is int), _TIMESTEPS.get(name, 2))


def lengths(inputs: Mapping[str, object]) -> dict[str, int]:
    """Returns the end of the only sequence, for each input that holds the limits of one sequence.

    Such an input is named `cu_seqlens...` and has two elements: zero and the longest length, which
    the call states.
    """
    longest = [n for name, n in inputs.items() if name.startswith("max_seqlen")]
    if not longest or len(set(longest)) > 1 or type(longest[0]) is not int:
        return {}
    return {
        name: longest[0]
        for name, one in inputs.items()
        if name.startswith("cu_seqlens") and isinstance(one, dict) and one["shape"] == [2]
    }
