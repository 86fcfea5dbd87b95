"""Messages that a hostile worker may send: well-formed ones, mutations of them, and noise."""

from __future__ import annotations

import copy
import functools
import json
import random
import struct
from typing import Any

from tests.sim.support import ASSEMBLER, kernel_text

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
LAUNCH = {"kernel": 0, "grid": [1, 1, 1], "block": [64, 1, 1], "sizes": [8], "lds": 0}
ADDRESS = 1 << 45
KEYS = ("outputs", "launches", "refused", "do", "code", "name", "wrong", "error", "more", "\ud800")


def tensor(address: int) -> dict[str, Any]:
    """A tensor as a worker describes it."""
    return {"address": address, "shape": [64, 256], "strides": [256, 1], "dtype": "float16"}


def answers(address: int = ADDRESS) -> tuple[dict[str, Any], ...]:
    """Well-formed answers to the judge, over memory at an address."""
    one = tensor(address)
    return (
        {"outputs": [one]},
        {"outputs": [one | {"start": 4096}], "launches": 1, "refused": ["aten::mm"]},
        {"outputs": [{"wrong": "a list"}]},
        {"outputs": [one] * 5},
        {"error": FAILURE},
        {"kernels": [FACTS, FACTS | {"name": "other"}]},
        {},
    )


def requests(address: int = ADDRESS) -> tuple[dict[str, Any], ...]:
    """Well-formed requests to the device, over memory at an address."""
    one = tensor(address)
    return (
        {"do": "allocate", "size": 4096},
        {"do": "free", "address": address},
        {"do": "load", "name": "k", "shared": 0},
        {"do": "names"},
        {"do": "variable", "name": "v"},
        {"do": "fill", "tensor": one, "value": 1},
        {"do": "copy", "source": one, "target": one},
        {"do": "refuse", "operator": "aten::mm"},
        {"do": "upload", "address": address},
        {"do": "launch"} | LAUNCH,
        {"do": "clock"},
    )


def operators(address: int) -> tuple[dict[str, Any], ...]:
    """Well-formed requests for operators of PyTorch, over memory at an address."""
    one = {**tensor(address), "dtype": "float32"}
    calls: tuple[tuple[str, str, list[Any], dict[str, Any]], ...] = (
        ("add", "Tensor", [one, one], {"alpha": 2}),
        ("mm", "default", [one, {**one, "shape": [256, 8], "strides": [8, 1]}], {}),
        ("sum", "dim_IntList", [one, {"list": [1]}, True], {"dtype": {"dtype": "float64"}}),
        ("full", "default", [{"list": [4, 4]}, 0.5], {"device": {"device": "cuda"}}),
        ("arange", "start_step", [0, 64, 2], {"dtype": {"dtype": "int64"}}),
        ("repeat", "default", [one, {"list": [2, 2]}], {}),
        ("outer", "default", [{**one, "shape": [64], "strides": [1]}] * 2, {}),
        ("index_select", "default", [one, 0, {"host": [[0, 1], "int64"]}], {}),
        ("index_put_", "default", [one, {"list": [{"host": [[0], "int64"]}]}, one], {}),
        ("cat", "default", [{"list": [one, one]}, 1], {}),
        ("bincount", "default", [{"host": [[1, 2], "int64"]}, None, 4], {}),
        ("as_strided", "default", [one, {"list": [8, 8]}, {"list": [8, 1]}, 0], {}),
        ("convolution", "default", [one, one, None, {"list": [1]}, {"list": [0]}], {}),
    )
    requested = [
        {"do": "operator", "name": f"aten::{n}", "overload": o, "args": a, "kwargs": k}
        for n, o, a, k in calls
    ]
    return (*requested, {"do": "values", "tensor": {**one, "shape": [8], "strides": [1]}})


def message(draws: random.Random, templates: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """A message of the protocol with up to four changes anywhere within it."""
    made = copy.deepcopy(draws.choice(templates))
    for _ in range(draws.randrange(5)):
        _change(draws, made)
    return made


@functools.cache
def modules() -> tuple[bytes, bytes]:
    """A kernel as an assembler text and as a code object."""
    text = kernel_text("\ts_nop 0")
    return text.encode(), ASSEMBLER.code_object(text)


def code(draws: random.Random) -> bytes:
    """A module with up to twenty wrong bytes."""
    made = bytearray(draws.choice(modules()))
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
