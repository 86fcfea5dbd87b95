"""Stand-ins for vLLM and SGLang, which need a GPU to install, with the signatures of their classes.

Each class computes its operation in plain PyTorch, rounds once, and counts its calls. The mechanism
of registration is small here, or the engine's own file if a folder of sources is named.
"""

from __future__ import annotations

import functools
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from kernel_gym.packages.engines import CLASSES, SGLANG, VLLM, EngineClass

WIDTH, HEADS, HEAD = 4096, 8, 128


def _norm(module: Any, x: torch.Tensor, residual: Any = None) -> Any:
    total = x if residual is None else x + residual
    normal = F.rms_norm(total.float(), (x.shape[-1],), module.weight.float(), 1e-5).to(x.dtype)
    return normal if residual is None else (normal, total)


def _layer_norm(module: Any, x: torch.Tensor) -> torch.Tensor:
    wide = (one.float() for one in (module.weight, module.bias))
    return F.layer_norm(x.float(), (x.shape[-1],), *wide, 1e-5).to(x.dtype)


def _swiglu(module: Any, x: torch.Tensor) -> torch.Tensor:
    gate, up = x.float().chunk(2, dim=-1)
    return (F.silu(gate) * up).to(x.dtype)


def _rope(module: Any, positions: torch.Tensor, query: torch.Tensor, key: Any = None) -> Any:
    cos, sin = module.cos_sin_cache[positions][:, None].chunk(2, dim=-1)

    def rotate(x: torch.Tensor) -> torch.Tensor:
        a, b = x.float().view(len(positions), -1, HEAD).chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).view(x.shape).to(x.dtype)

    return rotate(query), key if key is None else rotate(key)


COMPUTED = ("x", "residual", "positions", "query", "key")
"""Parameters that decide the result; the others are None here."""
PLAIN = {
    "RMSNorm": _norm,
    "LayerNorm": _layer_norm,
    "SiluAndMul": _swiglu,
    "GELUTanh": lambda module, x: F.gelu(x, approximate="tanh"),
    "ReLUSquaredActivation": lambda module, x: F.relu(x).square(),
    "ReLU2": lambda module, x: F.relu(x).square(),
    "RotaryEmbedding": _rope,
}


def attributes(one: EngineClass, device: str) -> dict[str, Any]:
    """Returns attributes that a class has: those that packages read, and the settings."""
    angles = torch.outer(torch.arange(64), 10000.0 ** -torch.arange(0, 1, 2 / HEAD))
    values: dict[str, Any] = {
        "weight": torch.linspace(0.5, 1.5, WIDTH).half(),
        "bias": torch.linspace(-1, 1, WIDTH).half(),
        "cos_sin_cache": torch.cat((angles.cos(), angles.sin()), dim=-1),
        "head_size": HEAD,
        "rotary_dim": HEAD,
        "eps": 1e-5,
        "variance_epsilon": 1e-5,
    }
    read = {name: values[name] for name in one.reads}
    moved = {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in read.items()}
    return moved | dict(one.settings)


def _class(engine: str, one: EngineClass, base: type, device: str) -> type:
    """Makes a class with the parameters of the engine's own one."""
    listed = ", ".join(
        name if place == 0 or name in ("query", "key") else f"{name}=None"
        for place, name in enumerate(one.parameters)
    )
    space: dict[str, Any] = {"plain": PLAIN[one.name]}
    given = ", ".join(one for one in one.parameters if one in COMPUTED)
    text = f"def forward_native(self, {listed}):\n self.calls += 1\n return plain(self, {given})"
    exec(text, space)

    def start(self: Any) -> None:
        base.__init__(self)
        self.calls = 0
        for name, value in attributes(one, device).items():
            setattr(self, name, value)

    own = space["forward_native"]
    methods = {"__init__": start, "forward_native": own, "forward_cuda": own}
    return type(one.name, (base,), {**methods, "__module__": one.module})


class _Operator(nn.Module):
    """vLLM's rule: a class that is registered under the name is made instead."""

    registry: dict[str, type] = {}  # noqa: RUF012

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls.registry.get(cls.__name__, cls))

    @classmethod
    def register_oot(cls, one: type) -> type:
        assert cls.__name__ not in cls.registry, cls.__name__
        cls.registry[cls.__name__] = one
        return one

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_hip(*args, **kwargs)

    def forward_hip(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_cuda(*args, **kwargs)


class _Fused(nn.Module):
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward_native(*args, **kwargs)


class _Hooks:
    """SGLang's rule: a hook around a method gets the method first."""

    waiting: list[tuple[str, Any]] = []  # noqa: RUF012

    @classmethod
    def register(cls, target: str, hook: Any, kind: str) -> None:
        assert kind == "around"
        cls.waiting.append((target, hook))

    @classmethod
    def apply_hooks(cls) -> None:
        for target, hook in cls.waiting:
            module, name, method = target.rsplit(".", 2)
            owner = getattr(sys.modules[module], name)
            setattr(owner, method, functools.partialmethod(_call, hook, getattr(owner, method)))


def _call(self: Any, hook: Any, method: Any, *args: Any, **kwargs: Any) -> Any:
    return hook(method, self, *args, **kwargs)


def registered() -> list[Any]:
    """Returns what plug-ins have registered."""
    return [*_Operator.registry, *_Hooks.waiting]


def install(device: str, sources: str = "") -> Any:
    """Puts both engines into `sys.modules`, and returns SGLang's registry of hooks."""
    registry = SimpleNamespace(CustomOp=_Operator, op_registry_oot=_Operator.registry)
    hooks = SimpleNamespace(HookRegistry=_Hooks, HookType=SimpleNamespace(AROUND="around"))
    if sources:
        _stub_what_vllm_imports()
        registry = _own_file(Path(sources), "vllm/model_executor/custom_op.py")
        hooks = _own_file(Path(sources), "sglang/srt/plugins/hook_registry.py")
    _put("vllm.model_executor.custom_op", vars(registry))
    _put("sglang.srt.plugins.hook_registry", vars(hooks))
    made: dict[str, dict[str, type]] = {}
    for classes in CLASSES.values():
        for engine, base in ((VLLM, registry.CustomOp), (SGLANG, _Fused)):
            if engine in classes:
                one = classes[engine]
                same = made.setdefault(one.module, {})
                same.setdefault(one.name, _class(engine, one, base, device))
    for module, names in made.items():
        _put(module, names)
    return hooks.HookRegistry


def _stub_what_vllm_imports() -> None:
    config = SimpleNamespace(
        custom_ops=["none"], enabled_custom_ops=set(), disabled_custom_ops=set()
    )
    logger = SimpleNamespace(debug=print, warning_once=print)
    _put("vllm.config", {"get_cached_compilation_config": lambda: config})
    _put("vllm.logger", {"init_logger": lambda name: logger})
    _put("vllm.model_executor.utils", {"maybe_disable_graph_partition": None})
    _put("vllm.platforms", {"current_platform": SimpleNamespace(is_rocm=lambda: True)})


def _own_file(sources: Path, path: str) -> ModuleType:
    name = path.removesuffix(".py").replace("/", ".")
    spec = spec_from_file_location(name, sources / path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _put(name: str, values: dict[str, Any]) -> None:
    """Puts a module with values into `sys.modules`, and the packages above it."""
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        above = ".".join(parts[:count])
        module = sys.modules.setdefault(above, ModuleType(above))
        if count > 1:
            setattr(sys.modules[".".join(parts[: count - 1])], parts[count - 1], module)
    vars(sys.modules[name]).update({k: v for k, v in values.items() if not k.startswith("__")})
