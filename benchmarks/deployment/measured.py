"""Measures packages in models of real width on a GPU, beside what the operator alone predicts.

    python -m benchmarks.deployment.measured --device cuda:0 [--work FOLDER]

The kernels are judged on that GPU first. Models have four layers of width 2048 and random weights;
prefill takes eight prompts of 2048 tokens, decoding 64 tokens of two sequences. A table is printed,
and FOLDER has the results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.deployment.architectures import GATED_GELU, config_of

ROOT = Path(__file__).parents[2]
COMMAND = "python -m benchmarks.deployment.measured --device cuda:0"
POINTS = 0.05
"""Difference between predicted and measured gain that counts as near."""
MODELS: dict[str, tuple[str, ...]] = {
    "llama": (
        "rms_norm",
        "add_rms_norm",
        "swiglu",
        "softmax",
        "gqa_attention",
        "gather_rows",
        "cross_entropy",
        "bitnet_matmul",
    ),
    GATED_GELU: ("geglu",),
    "mistral": ("add_rms_norm",),
    "qwen2": ("swiglu",),
    "qwen3": ("rms_norm",),
    "gemma2": ("rms_norm",),
    "phi3": ("swiglu",),
    "olmo2": ("rms_norm",),
    "smollm3": ("add_rms_norm",),
    "granite": ("swiglu",),
    "gpt_neox": ("layer_norm",),
    "gpt2": ("layer_norm",),
    "opt": ("layer_norm",),
    "mixtral": ("moe_topk_softmax",),
    "granitemoe": ("moe_topk_softmax",),
    "vit": ("patch_embed",),
    "clip_vision_model": ("patch_embed",),
}
"""Packages of each model."""
WIDE: dict[str, int] = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 8192,
    "max_position_embeddings": 2048,
    "n_embd": 2048,
    "n_layer": 4,
    "n_head": 16,
    "n_positions": 2048,
    "ffn_dim": 8192,
    "word_embed_proj_dim": 2048,
    "image_size": 224,
}
"""Sizes of the models, by the names that configurations have for them."""


def main() -> None:
    """Measures, writes the results and prints them as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--work", type=Path, default=ROOT / "runs/deployment-measured")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    result = result_of(options.device, measure(options.device, options.work))
    path = options.work / "measured.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(result))


def measure(device: str, work: Path) -> list[dict[str, Any]]:
    """Returns one row for each model and package; those of the folder are not measured again."""
    import transformers

    from benchmarks.deployment.packages import write_packages
    from kernel_gym.packages.models import child

    transformers.logging.set_verbosity_error()
    names = tuple(dict.fromkeys(name for wanted in MODELS.values() for name in wanted))
    write_packages(work / "packages", names, device)
    loaded = {name: child.load(work / "packages" / name, device) for name in names}
    rows = []
    for model, wanted in MODELS.items():
        for package in wanted:
            path = work / f"{model.replace(' ', '_')}-{package}.json"
            if not path.exists():
                began = time.perf_counter()
                row = row_of(loaded[package], model, package, device)
                path.write_text(json.dumps(row), encoding="utf-8")
                print(model, package, f"{time.perf_counter() - began:.1f} s", row, flush=True)
            rows.append(json.loads(path.read_text(encoding="utf-8")))
    return rows


def row_of(loaded: Any, model: str, package: str, device: str) -> dict[str, Any]:
    """Returns what a package does in a model, or why it does nothing."""
    from kernel_gym.errors import InputError
    from kernel_gym.packages.models import child

    row: dict[str, Any] = {"model": model, "package": package}
    try:
        deployment = child.compare(loaded, config_of(model, package, WIDE), device, device)
    except InputError as error:
        return row | {"error": str(error)}
    data = deployment.model_dump(mode="json", exclude={"source_sha256"})
    return row | data | {"parity": deployment.parity, "replaced": deployment.replaced}


def result_of(device: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the rows with what measured them."""
    import torch

    libraries = ("transformers", "kernels", "triton")
    return {
        "command": COMMAND,
        "date": datetime.now(UTC).date().isoformat(),
        "gpu": torch.cuda.get_device_name(device),
        "versions": {"torch": torch.__version__} | {name: version(name) for name in libraries},
        "rows": rows,
    }


def table(result: dict[str, Any]) -> str:
    """Returns the results as a table in Markdown."""
    phases = [phase for row in result["rows"] for phase in row.get("phases", ())]
    predicted: dict[str, list[bool]] = defaultdict(list)
    for phase in phases:
        if (gain := phase["predicted_gain"]) is not None:
            predicted[phase["name"]].append(abs(phase["gain"] - gain) <= POINTS)
    near = ", ".join(f"{sum(own)} of {len(own)} ({name})" for name, own in predicted.items())
    replaced = [row for row in result["rows"] if row.get("replaced")]
    lines = [
        f"{result['gpu']}, {result['date']}. Predicted and measured gain differ by at most five "
        f"points in {near}. {sum(r['parity'] for r in replaced)} of "
        f"{len(replaced)} models have parity.",
        "",
        "| model | package | parity | phase | share | alone | predicted | measured |",
        "|---|---|---|---|--:|--:|--:|--:|",
    ]
    return "\n".join([*lines, *(line for row in result["rows"] for line in _lines(row))]) + "\n"


def _lines(row: dict[str, Any]) -> list[str]:
    name = f"| {row['model']} | `{row['package']}` |"
    if not row.get("phases"):
        left = {site["reason"] for site in row.get("sites", ())}
        reason = row.get("error") or row.get("failure") or f"not replaced: {'; '.join(left)}"
        return [f"{name} {_cell(reason)} |" + " |" * 5]
    name += f" {'yes' if row['parity'] else 'no'} |"
    lines = [f"{name} {phase['name']} | {' | '.join(_cells(phase))} |" for phase in row["phases"]]
    if row.get("uncaptured"):
        lines.append(f"{name} not captured: {_cell(row['uncaptured'])} |" + " |" * 4)
    return lines


def _cell(reason: str) -> str:
    """Returns the first sentence of a reason."""
    return reason.partition(". ")[0]


def _cells(phase: dict[str, Any]) -> tuple[str, ...]:
    called, predicted = phase["operator_gain"] is not None, phase["predicted_gain"]
    share = "fused" if called and predicted is None else f"{phase['share']:.1%}"
    return (
        share if called else "never called",
        f"{phase['operator_gain']:.2f}" if called else "",
        f"{predicted:.3f}" if predicted is not None else "",
        f"{phase['gain']:.3f} ({phase['gain_low']:.3f} to {phase['gain_high']:.3f})",
    )


if __name__ == "__main__":
    main()
