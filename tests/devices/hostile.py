"""Messages that a hostile recorder may send: well-formed ones, mutations of them, and noise."""

from __future__ import annotations

import copy
import functools
import json
import math
import random
import struct
from typing import Any

from tests.sim.support import kernel_text

ODD: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 1 << 31, 1 << 62, 1 << 63, 1 << 70, -(1 << 70), 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "float16", "float32", "quint8"),
    *("qint32", "quint4x2", "bits8", "load", "\ud800", "\x1b[2J", "\u2028", "\u202e", "A" * 4000),
    *(
        [],
        {},
        [[]],
        [1],
        ["x"],
        [{}] * 70,
        [[["y"] * 50] * 9],
        {"a": {"b": []}},
        "outputs",
        "error",
    ),
)
FAILURE = {"kind": "compile", "type": "Error", "message": "it broke", "detail": "line 1\nline 2"}
FACTS = {"name": "k", "vgprs": 8, "sgprs": 9, "waves_per_simd": 2.0, "error": "none"}
LAUNCH = {"do": "launch", "kernel": 0, "grid": [1, 1, 1], "block": [64, 1, 1], "shared": 0}
SIZE = 1 << 15
"""Bytes of the only argument of a plan."""
ADDRESS = 1 << 45
KEYS = (
    "plan",
    "steps",
    "outputs",
    "launches",
    "refused",
    "do",
    "code",
    "name",
    "wrong",
    "error",
    "more",
    "\ud800",
)


def tensor(address: int) -> dict[str, Any]:
    """A tensor as a worker describes it."""
    return {"address": address, "shape": [64, 256], "strides": [256, 1], "dtype": "float16"}


def answers(address: int = ADDRESS) -> tuple[dict[str, Any], ...]:
    """Well-formed answers to the judge, over memory at an address."""
    one = tensor(address)
    return (
        *({"plan": made, "refused": []} for made in plans()),
        *({"ask": ask, "first": 0, "plan": plans()[0]} for ask in ("seconds", "values", "forms")),
        {"outputs": [one]},
        {"outputs": [one | {"start": 4096}], "launches": 1, "refused": ["aten::mm"]},
        {"outputs": [{"wrong": "a list"}]},
        {"outputs": [one] * 5},
        {"error": FAILURE},
        {"kernels": [FACTS, FACTS | {"name": "other"}]},
        {},
    )


def view(dtype: str = "float16", shape: tuple[int, ...] = (64, 256)) -> dict[str, Any]:
    """A contiguous tensor at the start of the only argument of a plan."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return {"buffer": 0, "offset": 0, "shape": list(shape), "strides": strides, "dtype": dtype}


def plan(steps: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    """A plan over one input and one piece of scratch, with the code of `module`."""
    free = {"size": SIZE, "number": 0, "begin": 0, "end": None, "code": None, "symbol": ""}
    made = {
        "version": 1,
        "arch": "gfx942",
        "codes": [{"form": "assembler", "size": len(module())}],
        "kernels": [{"code": 0, "name": "k", "shared": None}],
        "buffers": [free | {"role": "input"}, free | {"role": "scratch"}],
        "steps": steps,
        "outputs": [view()],
    }
    return made | parts


def plans() -> tuple[dict[str, Any], ...]:
    """Well-formed plans."""
    place = {"at": 0, "buffer": 0, "offset": 0}
    argument = {"data": "00" * 8, "references": [list(place.values())]}
    upload = {"do": "upload", "buffer": 0, "offset": 0, "size": 8, "references": []}
    return (
        plan([LAUNCH | {"arguments": [argument]}]),
        plan([{"do": "fill", "target": view(), "pattern": "003c"}]),
        plan([{"do": "copy", "source": view(), "target": view() | {"buffer": 1}}]),
        plan([upload]),
        plan([{"do": "read", "source": view(shape=(4,)), "size": 8}]),
        plan([LAUNCH | {"arguments": [argument]}, upload], outputs=[{"wrong": "a list"}]),
    )


def operators() -> tuple[dict[str, Any], ...]:
    """Well-formed plans that run one operator of PyTorch."""
    one = view("float32", (64, 128))
    first = {"tensor": 0}
    calls: tuple[tuple[str, str, list[Any], dict[str, Any], list[Any]], ...] = (
        ("add", "Tensor", [first, {"tensor": 1}], {"alpha": 2}, [one, one]),
        ("mm", "default", [first, {"tensor": 1}], {}, [one, view("float32", (128, 8))]),
        ("sum", "dim_IntList", [first, {"list": [1]}], {"dtype": {"dtype": "float64"}}, [one]),
        ("full", "default", [{"list": [4, 4]}, 0.5], {"device": {"device": "cuda"}}, []),
        ("arange", "start_step", [0, 64, 2], {"dtype": {"dtype": "int64"}}, []),
        ("repeat", "default", [first, {"list": [2, 2]}], {}, [one]),
        ("outer", "default", [first, {"tensor": 1}], {}, [view("float32", (64,))] * 2),
        ("index_select", "default", [first, 0, {"host": [[0, 1], "int64"]}], {}, [one]),
        ("cat", "default", [{"list": [first, {"tensor": 1}]}, 1], {}, [one, one]),
        ("bincount", "default", [{"host": [[1, 2], "int64"]}, None, 4], {}, []),
        ("as_strided", "default", [first, {"list": [8, 8]}, {"list": [8, 1]}, 0], {}, [one]),
        ("convolution", "default", [first, first, None, {"list": [1]}, {"list": [0]}], {}, [one]),
    )
    return tuple(plan([operator(f"aten::{n}", o, a, k, t)]) for n, o, a, k, t in calls)


def operator(
    name: str, overload: str, args: list[Any], kwargs: dict[str, Any], tensors: list[Any]
) -> dict[str, Any]:
    """A step that runs an operator and asks for the form of its result."""
    text = json.dumps({"args": args, "kwargs": kwargs})
    named = {"name": name, "overload": overload, "arguments": text}
    return {"do": "operator", **named, "tensors": tensors, "results": None, "told": False}


def message(draws: random.Random, templates: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """A message of the protocol with up to four changes anywhere within it."""
    made = copy.deepcopy(draws.choice(templates))
    for _ in range(draws.randrange(5)):
        _change(draws, made)
    return made


@functools.cache
def module() -> bytes:
    """A kernel as an assembler text."""
    return kernel_text("\ts_nop 0").encode()


def code(draws: random.Random) -> bytes:
    """A module with up to twenty wrong bytes."""
    made = bytearray(module())
    for _ in range(draws.randrange(20)):
        made[draws.randrange(len(made))] = draws.randrange(256)
    return bytes(made)


def framed(draws: random.Random, header: Any, data: bytes | None = None) -> bytes:
    """A message as bytes of the pipe; in one of four something is wrong with them."""
    text = json.dumps(header).encode()
    sizes = b"" if data is None else struct.pack("<Q", len(data))
    whole = struct.pack("<II", len(text), int(data is not None)) + sizes + text + (data or b"")
    kind = draws.randrange(20)
    if kind == 0:
        return whole[: draws.randrange(len(whole))]
    if kind == 1:
        return draws.randbytes(draws.randrange(40))
    if kind == 2:
        return struct.pack("<II", draws.choice((0, 1 << 31, 2 << 20)), draws.choice((0, 9))) + text
    if kind == 3:
        noise = draws.choice((b"[" * 5000, b"{", b"[]", b"1", b'"\xff"', b"{}{}", b"9" * 5000))
        return struct.pack("<II", len(noise), 0) + noise
    if kind == 4:
        big = draws.choice(([{}] * 200_000, "\u0001" * 150_000, [[0]] * 100_000))
        flood = json.dumps({draws.choice(("outputs", "error", "refused")): big}).encode()
        return struct.pack("<II", len(flood), 0) + flood
    return whole


def _change(draws: random.Random, value: Any) -> None:
    """Replaces, adds or removes something at a random place."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys or draws.random() < 0.1:
            break
        key = draws.choice(keys)
        if isinstance(value[key], dict | list) and draws.random() < 0.7:
            value = value[key]
            continue
        if draws.random() < 0.1:
            del value[key]
        else:
            value[key] = copy.deepcopy(draws.choice(ODD))
        return
    added = copy.deepcopy(draws.choice(ODD))
    if isinstance(value, list):
        value.append(added)
    else:
        value[str(draws.choice(KEYS))] = added
