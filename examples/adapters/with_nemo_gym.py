"""NeMo Gym 0.4 (Python 3.12): a row of its dataset, and the verdict on a response.

python -m kernel_gym.envs.adapters.nemo_gym    # started by NeMo Gym as a resources server

KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_nemo_gym.py
"""

from kernel_gym.tasks import get_task

try:
    from fastapi.testclient import TestClient
    from nemo_gym.base_resources_server import BaseResourcesServerConfig
    from nemo_gym.server_utils import ServerClient

    from kernel_gym.envs.adapters.nemo_gym import KernelServer
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'nemo-gym'") from None

TASK = "triton2triton/softmax"
ROW = {"responses_create_params": {"input": [{"role": "user", "content": "prompt"}]}, "task": TASK}


def response(text: str) -> dict:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    return {
        "id": "r",
        "created_at": 0,
        "model": "m",
        "object": "response",
        "output": [message | {"content": [part]}],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
    }


def episode() -> None:
    config = BaseResourcesServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="kernels"
    )
    server = KernelServer(config=config, server_client=ServerClient.model_construct())
    with TestClient(server.setup_webserver()) as http:  # NeMo Gym serves it on a port
        body = ROW | {"response": response(get_task(TASK).start_source), "seed": 0}
        verdict = http.post("/verify", json=body).raise_for_status().json()
    print(f"reward {verdict['reward']:.3f}")


if __name__ == "__main__":
    episode()
