"""Evaluates a language model: one file, over an OpenAI-compatible endpoint or a local function.

    python examples/evaluate_my_model.py                                # a local function
    python examples/evaluate_my_model.py --url http://localhost:8000/v1 --model my-model

The model gets the prompt of each task and writes a kernel. It reads feedback and tries again, up to
`--turns` times. The key of the endpoint is read from OPENAI_API_KEY. `kernel-gym eval` does the
same with many evaluations side by side, retries, stored runs and a report.
"""

import argparse
import json
import os
import re
import statistics
import urllib.request
from collections.abc import Callable

import gymnasium

import kernel_gym
from kernel_gym.episodes.reply import extract_source

Message = dict[str, str]
Model = Callable[[list[Message]], str]
"""A model takes a conversation and returns its next message."""


def echo(messages: list[Message]) -> str:
    """Stands in for a model: returns the kernel in the prompt. Put your own function here."""
    blocks = re.findall(r"```\w*\n.*?```", messages[0]["content"], re.DOTALL)
    return next(block for block in blocks if "@triton.jit" in block)


def endpoint(url: str, model: str) -> Model:
    """Returns a model behind an endpoint with the chat completions API."""

    def complete(messages: list[Message]) -> str:
        body = json.dumps({"model": model, "messages": messages}).encode()
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{url.rstrip('/')}/chat/completions", body, headers)
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.load(response)["choices"][0]["message"]["content"] or ""

    return complete


def play(model: Model, task_id: str, device: str, turns: int, seed: int) -> tuple[float, float]:
    """Plays one task.

    Returns:
        The best reward, and the best speedup (its lower bound; 0 if no kernel passed).
    """
    env = gymnasium.make("KernelOpt-v0", task=task_id, device=device, max_turns=turns)
    task = kernel_gym.get_task(task_id)
    observation, _ = env.reset(seed=seed)
    messages = [{"role": "user", "content": observation["task"]}]
    rewards, terminated = [0.0], False
    while not terminated:
        reply = model(messages)
        source = extract_source(reply, task)
        observation, reward, terminated, _, info = env.step(source)
        print(f"{task_id} turn {info['turn']}: {info['outcome']}, reward {reward:.2f}", flush=True)
        if not info["masked"]:  # the machine failed, not the kernel
            rewards.append(float(reward))
        messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": observation["feedback"]})
    best = float(observation["best_speedup"])
    env.close()
    return max(rewards), best


def main() -> None:
    """Plays a suite and prints the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", help="endpoint, such as http://localhost:8000/v1")
    parser.add_argument("--model", default="default", help="name of the model at the endpoint")
    parser.add_argument("--suite", default="triton2triton/softmax", help="a suite or one task")
    parser.add_argument("--device", default="sim:gfx942")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    model = endpoint(options.url, options.model) if options.url else echo
    tasks = kernel_gym.load_suite(options.suite).tasks
    results = [play(model, task.id, options.device, options.turns, options.seed) for task in tasks]
    rewards, speedups = zip(*results, strict=True)
    solved = sum(speedup > 0 for speedup in speedups)
    mean = statistics.mean(rewards)
    print(f"{solved} of {len(results)} tasks solved, mean best reward {mean:.2f}")


if __name__ == "__main__":
    main()
