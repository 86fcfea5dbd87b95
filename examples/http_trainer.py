"""A trainer that only speaks HTTP: it learns which block size of a kernel is fast.

    kernel-gym serve --device sim:gfx942 &
    python examples/http_trainer.py

It imports nothing of this package; any language with an HTTP client can do the same.
"""

import random
import re
import sys

import httpx

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
TASK = "triton2triton/softmax"
BLOCKS = ("1024", "2048", "4096", "8192")

values = dict.fromkeys(BLOCKS, 0.0)
with httpx.Client(base_url=URL, timeout=120) as http:
    prompt = http.get(f"/v1/tasks/{TASK}").raise_for_status().json()["prompt"]
    kernel = re.findall(r"```(?:python|triton)?\n(.*?)```", prompt, re.DOTALL)[0]
    for step in range(8):
        block = random.choice(BLOCKS) if step < 4 else max(values, key=values.get)
        source = re.sub(r"BLOCK=\d+", f"BLOCK={block}", kernel)
        body = {"task": TASK, "source": source, "key": f"{random.getrandbits(64):x}"}
        result = http.post("/v1/evaluations?wait=60", json=body).raise_for_status().json()
        if result["masked"] or result["state"] != "done":
            continue  # the machine failed: never a reward of 0
        values[block] += 0.5 * (result["reward"] - values[block])
        print(f"step {step}: BLOCK={block} reward {result['reward']:.3f}")
print("best:", max(values, key=values.get))
