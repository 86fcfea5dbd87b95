"""Presets: named rewards of this project and of published work.

To add one, write a :class:`~kernel_gym.rewards.recipe.Recipe` here and register it, or decorate a
function of an evaluation with :func:`register_reward`.

The publications have their own checks of correctness. Here a kernel is correct if it is right on
every train, adversarial and unseen workload, which is stricter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kernel_gym.rewards import correctness, craft, speed, sure
from kernel_gym.rewards.recipe import Part, Recipe
from kernel_gym.rewards.reward import Reward

TERM_MODULES = (correctness, craft, speed, sure)
"""The modules with terms. Importing a module registers its terms."""
DEFAULT_REWARD = "kernel-opt"
CORRECT = 0.15
"""The `kernel-opt` reward of a correct kernel as fast as the baseline."""
SLOWEST_CORRECT = 0.12
"""The `kernel-opt` reward of a correct kernel that is ten times slower than the baseline."""
REWARDS: dict[str, Reward] = {}

AnyReward = TypeVar("AnyReward", bound=Reward)


def register_reward(name: str) -> Callable[[AnyReward], AnyReward]:
    """Makes a reward available by name.

    Args:
        name: The name of the reward.

    Returns:
        A decorator that registers the reward and returns it unchanged.

    Raises:
        ValueError: The name is already registered.
    """

    def register(reward: AnyReward) -> AnyReward:
        if name in REWARDS:
            raise ValueError(f"reward {name!r} is registered already")
        REWARDS[name] = reward
        return reward

    return register


def reward_names() -> tuple[str, ...]:
    """Returns the registered names, sorted."""
    return tuple(sorted(REWARDS))


def _preset(recipe: Recipe) -> Recipe:
    return register_reward(recipe.name)(recipe)


_SLOPE = {"below": (CORRECT - SLOWEST_CORRECT) / (1.0 - CORRECT)}

KERNEL_OPT = _preset(
    Recipe(
        DEFAULT_REWARD,
        gates=(Part("passed"),),
        terms=(
            Part("passed", CORRECT, "correct"),
            Part("carried_speed", 0.5 * (1.0 - CORRECT), "speed", _SLOPE),
            Part("unseen_speed", 0.5 * (1.0 - CORRECT), "transfer", _SLOPE),
            Part("speed", 0.0, "train_speed"),
            Part("retention", 0.0),
            Part("unseen_share", 0.0),
        ),
        ungated=(Part("credit"),),
        source="this project; docs/rewards.md gives the reasons",
    )
)
"""The default reward: a correctness gate, then speed, one half that carries over and one half on
unseen workloads.

A failure earns partial credit of at most 0.11, and a hack -1. A correct kernel earns 0.12 to 0.15
if it is slower than the baseline, and up to 1.0 at ten times the speed of the baseline.
"""

FASTEST_SLOWER, COPY = 0.25, 0.115
_SMOOTH = {"slack": 1.4, "below": (FASTEST_SLOWER - SLOWEST_CORRECT) / (1.0 - FASTEST_SLOWER)}

KERNEL_OPT_SMOOTH = _preset(
    Recipe(
        "kernel-opt-smooth",
        gates=(Part("passed"),),
        terms=(
            Part("passed", FASTEST_SLOWER, "correct"),
            Part("paid_speed", 1.0 - FASTEST_SLOWER, "speed", _SMOOTH),
            Part("copied", COPY - FASTEST_SLOWER),
            Part("retention", 0.0),
            Part("unseen_share", 0.0),
        ),
        ungated=(Part("credit"),),
        source="this project; docs/rewards.md gives the reasons",
    )
)
"""A reward for tasks of any head-room.

A correct kernel earns 0.12 (ten times slower) to 0.25 (as fast as the baseline), then 0.47 at 2x,
0.76 at 10x and 0.93 at 100x. A copy of the start kernel earns 0.115, less than any own effort.
Unseen workloads may be 1.4 times slower than train ones at no cost, so that their draw moves the
reward of most kernels by less than 0.05 (docs/rewards.md).
"""

KERNEL_OPT_CALIBRATED = _preset(
    Recipe(
        "kernel-opt-calibrated",
        gates=(Part("passed"),),
        terms=(
            Part("passed", CORRECT, "correct"),
            Part("sure_carried_speed", 0.5 * (1.0 - CORRECT), "speed", _SLOPE),
            Part("sure_unseen_speed", 0.5 * (1.0 - CORRECT), "transfer", _SLOPE),
            Part("calibrated_share", 0.0),
            Part("retention", 0.0),
            Part("unseen_share", 0.0),
        ),
        ungated=(Part("credit"),),
        source="this project; docs/rewards.md gives the reasons",
    )
)
"""`kernel-opt` for the speedup that a modelled clock is sure of.

Each modelled speedup is divided by the factor by which it may be wrong, down to 1. Where the clock
was never compared with a GPU, a speedup counts as 1. On a GPU it pays what `kernel-opt` pays.
"""

AGENT_KERNEL_ARENA = _preset(
    Recipe(
        "agentkernelarena",
        terms=(
            Part("compiled", 20.0),
            Part("correct", 100.0),
            Part("speedup", 100.0, settings={"mean": "arithmetic"}),
        ),
        source="AgentKernelArena, src/score.py: 20 compiled + 100 correct + 100 x mean speedup",
    )
)

KERNEL_BENCH_FAST_P = _preset(
    Recipe(
        "kernelbench-fast-p",
        gates=(Part("passed"),),
        terms=(Part("faster"),),
        source="KernelBench (Ouyang et al., 2025): the mean over tasks is fast_p, here with p = 1",
    )
)

KEVIN = _preset(
    Recipe(
        "kevin",
        terms=(Part("correct", 0.3), Part("speedup")),
        gamma=0.4,
        source="Kevin-32B (Baronio et al., 2025): 0.3 correct + speedup; returns discounted by 0.4",
    )
)

CUDA_AGENT = _preset(
    Recipe(
        "cuda-agent",
        terms=(
            Part("correct"),
            Part("faster", label="faster_than_eager", settings={"than": 1.05}),
            Part("faster", label="faster_than_compiled", settings={"than": 1.05 * 1.5}),
        ),
        ungated=(Part("incorrect", -1.0),),
        source=(
            "CUDA Agent (ByteDance and Tsinghua, 2026): -1 wrong, 1 right, 2 over 5 % faster than "
            "eager, 3 than compiled PyTorch too; records hold one baseline, so that "
            "the compiled one is taken to be 1.5 times as fast as it"
        ),
    )
)

KERNEL_GYM_PAPER = _preset(
    Recipe(
        "kernelgym",
        gates=(Part("correct"),),
        terms=(
            Part("correct", 1.0, "correctness"),
            Part("speedup", settings={"cap": 3.0}),
            Part("passed", 1.0, "coverage"),
        ),
        source=(
            "Dr. Kernel and KernelGYM (2026): C + C min(speedup, 3) + C coverage; coverage, the "
            "share of device time in the candidate's own kernels, is 1 for whatever passes here: "
            "operators of a library that do the work are refused before"
        ),
    )
)

SOL = _preset(
    Recipe(
        "sol",
        gates=(Part("passed"),),
        terms=(Part("speed_of_light"),),
        source="SOL-ExecBench (NVIDIA, 2026): 1 / (1 + (T - T_sol) / (T_base - T_sol))",
    )
)

AUTO_TRITON = _preset(
    Recipe(
        "autotriton",
        terms=(Part("correct"),),
        source="AutoTriton (2025): 1 for a real kernel that passes its tests, else 0",
    )
)

TRITON_BENCH = _preset(
    Recipe(
        "tritonbench",
        terms=(
            Part("ran", 1.0, "call"),
            Part("correct", 1.0, "execution"),
            Part("speedup", 1.0, settings={"mean": "total"}),
        ),
        source=(
            "TritonBench (2025) and GEAK-eval: call accuracy, execution accuracy, total baseline "
            "time over total candidate time; they publish the three apart, the sum is ours"
        ),
    )
)
