#!/usr/bin/env python
"""Trains the small policy with and without a profile in its prompts, and compares both.

    python -m benchmarks.ablate_profile --out runs/ablation

Both policies are trained from nothing with the same budget and the same seeds: `off` reads the
launch of a kernel, `on` the launch and five lines of its profile. The difference of the mean reward
on held-out tasks is paired over tasks; that of each seed is beside it. All runs share evaluations,
so draws are the same in every step. A finished run is not repeated.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Literal

from kernel_gym.analysis.estimators import paired
from kernel_gym.executors import Executor, make_executor
from kernel_gym.rewards import Context
from kernel_gym.storage.secret import kept_secret
from kernel_gym.training.assess import Assessment
from kernel_gym.training.config import TrainConfig, read_config
from kernel_gym.training.scoring import Scored, Scorer
from kernel_gym.training.train import FINAL, START, Training

CONFIG = Path(__file__).parent.parent / "kernel_gym/training/configs/tiny_cpu.toml"
PROMPTS: dict[str, Literal["launch", "profiled"]] = {"off": "launch", "on": "profiled"}


class FixedDraws(Scorer):
    """Evaluates with the same workloads and data in every step, so that results can be cached."""

    def __call__(
        self,
        batch: Sequence[tuple[str, str]],
        contexts: Sequence[Context] | None = None,
        *,
        draw: str,
    ) -> list[Scored]:
        """Scores a batch; the name of the draw does not matter."""
        return super().__call__(batch, contexts, draw="ablation")


def small(config: TrainConfig, args: argparse.Namespace, switch: str, seed: int) -> TrainConfig:
    """The configuration of one run: that of the file with another prompt, smaller in all."""
    return replace(
        config,
        out=str(args.out / f"{switch}-{seed}"),
        seed=seed,
        gym=replace(config.gym, prompt=PROMPTS[switch]),
        model=replace(config.model, hidden=64, layers=2, heads=2),
        sft=replace(config.sft, steps=args.sft, learning_rate=5e-3),
        grpo=replace(config.grpo, steps=args.grpo, save_every=args.grpo),
    )


def train(config: TrainConfig, executor: Executor) -> tuple[Assessment, Assessment]:
    """Trains one policy, or reads its assessments, before and after reinforcement learning."""
    folder = Path(config.out)
    if (folder / FINAL / "evaluation.json").exists():
        return Assessment.read(folder / START), Assessment.read(folder / FINAL)
    training = Training(config, executor, resume=folder.exists(), log=print)
    training.scorer = FixedDraws(executor, training.scorer.reward, folder)
    return training.run()


def main() -> None:
    """Trains all runs and prints the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sft", type=int, default=350, help="steps of SFT")
    parser.add_argument("--grpo", type=int, default=30, help="steps of GRPO")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    config = read_config(CONFIG)
    runs: dict[str, list[tuple[Assessment, Assessment]]] = {switch: [] for switch in PROMPTS}
    with make_executor(
        "local", device=config.gym.device, seed=0, workers=config.gym.workers,
        secret=kept_secret(args.out / "secret.json"),
    ) as executor:  # fmt: skip
        for seed in range(args.seeds):
            for switch in PROMPTS:
                runs[switch].append(train(small(config, args, switch, seed), executor))
                print(
                    f"{switch}, seed {seed}: held out {runs[switch][-1][1].held_out:.3f}",
                    flush=True,
                )
    print(json.dumps(compared(runs, config), indent=1))


def compared(
    runs: dict[str, list[tuple[Assessment, Assessment]]], config: TrainConfig
) -> dict[str, object]:
    """Mean rewards on held-out tasks, and the paired difference with its 95 % interval."""
    tasks = config.tasks.held_out

    def rewards(switch: str, place: int) -> list[float]:
        return [fmean(run[place].metrics()[task] for run in runs[switch]) for task in tasks]

    difference = paired(rewards("off", 1), rewards("on", 1))
    return {
        **{
            f"{switch}: held out {name} GRPO": round(fmean(rewards(switch, place)), 4)
            for switch in PROMPTS
            for place, name in enumerate(("before", "after"))
        },
        "on - off by seed": [
            round(on[1].held_out - off[1].held_out, 4)
            for off, on in zip(runs["off"], runs["on"], strict=True)
        ],
        "on - off, paired over tasks": [
            None if value is None else round(value, 4)
            for value in (difference.value, difference.low, difference.high)
        ],
    }


if __name__ == "__main__":
    main()
