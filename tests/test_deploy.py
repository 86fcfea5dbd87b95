"""The recipes for clusters: they parse, and what they start exists. No cluster is asked."""

import json
import os
import re
import shlex
import signal
import subprocess
import tomllib

import pytest
import torch
import yaml
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices import resolve
from tests.test_architecture import ROOT

DEPLOY = ROOT / "examples" / "deploy"
SLURM = DEPLOY / "slurm.sh"


def require_known(arguments):
    """Checks that the command line has these options; `--help` ends it before it serves."""
    name, *rest = arguments
    assert name == "kernel-gym"
    done = CliRunner().invoke(app, [*rest, "--help"])
    assert done.exit_code == 0, done.output


@pytest.fixture
def manifests():
    text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_the_manifests_fit_together(manifests):
    claim, service = manifests["PersistentVolumeClaim"], manifests["Service"]
    deployment = manifests["Deployment"]["spec"]
    pod = deployment["template"]
    (container,) = pod["spec"]["containers"]
    volumes = {one["name"]: one for one in pod["spec"]["volumes"]}
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert set(mounts) == set(volumes)
    claimed = volumes["data"]["persistentVolumeClaim"]["claimName"]
    assert claimed == claim["metadata"]["name"]
    labels = pod["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert deployment["replicas"] == 1
    ports = [one["containerPort"] for one in container["ports"]]
    assert [one["port"] for one in service["spec"]["ports"]] == ports
    assert container["readinessProbe"]["httpGet"] == {"path": "/health", "port": ports[0]}
    options = dict(one.split("=") for one in container["args"][2:])
    assert options["--folder"] == mounts["data"]
    assert options["--tokens"].startswith(mounts["tokens"] + "/")


def test_the_container_starts_a_command_that_exists(manifests):
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    require_known(container["args"])


def test_the_batch_script_starts_a_command_that_exists():
    text = SLURM.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^kernel-gym .*(?= &$)", text, re.MULTILINE)
    require_known(shlex.split(line.replace("$PORT", "8000")))
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line)
               for line in text.splitlines() if line.startswith("#SBATCH"))  # fmt: skip


def test_the_batch_script_stops_the_service_and_then_ray(tmp_path):
    """With programs that only note how they were called in place of Ray and the service."""
    calls = tmp_path / "calls"
    for name, then in (("ray", ""), ("kernel-gym", "trap 'echo stopped >> $CALLS; exit' TERM\n"
                                     "kill -TERM $PPID\nwhile :; do :; done\n")):  # fmt: skip
        path = tmp_path / name
        path.write_text(f'#!/bin/bash\necho {name} "$1" >> $CALLS\n{then}')
        path.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls),
        "FOLDER": str(tmp_path / "folder"), "PORT": "8123",
    }  # fmt: skip
    done = subprocess.run(["bash", SLURM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, (done.stderr, signal.Signals(abs(done.returncode)))
    expected = ["ray start", "kernel-gym serve", "stopped", "ray stop"]
    assert calls.read_text().splitlines() == expected
    address = (tmp_path / "folder" / "address").read_text().strip()
    assert re.fullmatch(r"http://[\w.-]+:8123", address)


def test_the_recipes_start_on_a_gpu_of_amd(manifests, monkeypatch):
    """PyTorch for ROCm names its GPUs `rocm:0`; a build for CUDA, `cuda:0`."""
    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    (container,) = manifests["Deployment"]["spec"]["template"]["spec"]["containers"]
    (device,) = [one.partition("=")[2] for one in container["args"] if "--device" in one]
    assert resolve(device) == "rocm:0"
    assert "--device auto " in SLURM.read_text(encoding="utf-8")


def test_the_steps_of_the_image_run_as_far_as_they_need_no_container(tmp_path):
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    steps = [line.split(None, 1) for line in text.splitlines() if line and line[0] not in "# "]
    names = [name for name, _ in steps]
    assert names == ["ARG", "FROM", "RUN", "WORKDIR", "COPY", "RUN", "WORKDIR", "CMD"]
    (install,) = [rest for name, rest in steps if name == "RUN" and "pip install" in rest]
    select, pip, _ = install.split(" && ")
    kept = tmp_path / "constraints.txt"
    subprocess.run(select.replace("/tmp/constraints.txt", str(kept)), shell=True, cwd=ROOT)
    lines = kept.read_text(encoding="utf-8").splitlines()
    whole = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert {line.partition("==")[0] for line in set(whole) - set(lines)} == {"torch", "triton"}
    (wanted,) = re.findall(r"'\.\[(.*)\]'", pip)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(wanted.split(",")) <= set(extras["optional-dependencies"])
    require_known([*json.loads(steps[-1][1])])


def test_no_page_installs_the_package_from_an_index():
    """It is on none yet, so that a stranger might take its name."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", *ROOT.glob("examples/**/*")]
    for page in pages:
        if page.suffix in (".md", ".yml", ".yaml", ".sh", ".py"):
            lines = re.findall(r"pip install [^\n]*(?<![/\w])kernel-gym\b", page.read_text("utf-8"))
            assert not [line for line in lines if "-t kernel-gym" not in line], page
