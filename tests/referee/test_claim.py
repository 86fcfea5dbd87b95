"""Reading claims: statements, pairs and solutions, and claims whose inputs cannot be made."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernel_gym.referee.card import card_data, card_html, card_markdown
from kernel_gym.referee.claim import read_claim, solution_source
from kernel_gym.referee.judge import Card, CardStatement, Ruling, _controls
from kernel_gym.referee.pair import pair_statement
from kernel_gym.referee.problem import SIM_ELEMENTS
from kernel_gym.referee.statement import ClaimError, read_statement
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.workload import Kind, Split, Workload

HERE = Path(__file__).parent / "claims"
STATEMENT = (HERE / "gelu.toml").read_text()


def written(folder, **files):
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('entry = "gelu"', "", "entry: Field required"),
        ('entry = "gelu"', 'entry = "a b"', "entry: "),
        ('"bfloat16"', '"float9"', "found dtype 'float9'"),
        ('shape = "rows, cols"', 'shape = "rows, depth"', "depth"),
        ("rows = [1, 65536]", "rows = [9, 1]", "axis 'rows'"),
        ("{rows = 96, cols = 3072}", "{rows = 96}", "expected a size for each of rows, cols"),
        ("[axes]", "[axes", "invalid TOML"),
        ("[axes]", 'distributions = ["norml"]\n[axes]', "found 'norml'"),
    ],
)
def test_statements_are_checked(tmp_path, old, new, message):
    (tmp_path / "s.toml").write_text(STATEMENT.replace(old, new, 1))
    with pytest.raises(ClaimError, match=message):
        read_statement(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("", "defines no 'gelu'"),
        ("def gelu(x:\n", "SyntaxError"),
        ("raise RuntimeError('no')\n", "RuntimeError: no"),
        ("gelu = 3\n", "is a int, expected a class or function"),
        ("def gelu(y): return y\n", "missing a required argument: 'y'"),
        ("def gelu(x): return x, x\n", "found 2 outputs of 'gelu', expected 1"),
        ("def gelu(x): return x.float()\n", "found torch.float32 .*, expected torch.bfloat16"),
        ("def gelu(x): return x[1:]\n", r"found torch.bfloat16 \(95, 3072\), expected .*96, 3072"),
        ("def gelu(x): return x * 2 if x.sum() > 0 else x\n", "must not depend on values"),
        ("def gelu(x): return x + x.clone().normal_()\n", "draws random numbers"),
        (
            "import torch\nT = torch.ones(3072)\ndef gelu(x): return (x * T).bfloat16()\n",
            "made outside of the function",
        ),
        (
            "def gelu(x): return x + x.new_zeros(1 << 20, 1 << 20).sum()\n",
            "expected at most .* use smaller shapes",
        ),
    ],
)
def test_references_that_cannot_be_used(tmp_path, reference, message):
    folder = written(tmp_path, s__toml=STATEMENT, gelu_reference__py=reference + "\n", k__py="x")
    with pytest.raises(ClaimError, match=message):
        read_claim(folder / "k.py", folder / "s.toml")


PAIR = (HERE / "swish_pair.py").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("torch.rand(128, 4096)", "1 / 0", "ZeroDivisionError"),
        ("torch.rand(128, 4096)", "3.0", "must be Tensor, not float"),
        ("torch.rand(128, 4096)", "torch.rand(())", "no tensor with an axis"),
        ("torch.rand(128, 4096)", "['x'], torch.rand(2)", "too many positional arguments"),
        ("return x * torch", "return missing * torch", "NameError"),
        ("return []", "return [torch.rand(2)]", "the inputs cannot be made"),
        ("def forward", "w = nn.Parameter(torch.rand(3))\n\n    def forward", None),
    ],
)
def test_pairs_whose_inputs_cannot_be_made(old, new, message):
    text = PAIR.replace(old, new, 1)
    if message is None:
        text = PAIR.replace(
            "    def forward", "    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.rand(3))\n\n    def forward",
        )  # fmt: skip
        message = r"Model has parameters \(w\)"
    with pytest.raises(ClaimError, match=message):
        pair_statement(text)


def test_a_pair_gets_axes_that_the_model_takes():
    text = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.softmax(x @ w, dim=-1).view(-1, 4, w.shape[1])

def get_inputs():
    return [torch.rand(32, 48), torch.rand(48, 64)]

def get_init_inputs():
    return []
"""
    statement, _, tail = pair_statement(text)
    assert statement.shapes == ({"n0": 32, "n1": 48, "n2": 64},)
    assert statement.axes["n0"] == (32, 32)  # its rows are split into groups of four
    assert statement.axes["n1"][1] > 1000
    assert [part.shape for part in statement.input] == ["n0, n1", "n1, n2"]
    assert "def claimed(x0, x1)" in tail


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ({"spec": {}, "sources": []}, "ValueError"),
        ({"spec": {"entry_point": "a::b c"}, "sources": [{"path": "a", "content": ""}]}, "FILE::"),
        ({"spec": {"entry_point": "b"}, "sources": [{"path": "a", "content": 3}]}, "found int"),
    ],
)
def test_solutions_are_checked(solution, message):
    text = solution if isinstance(solution, str) else json.dumps(solution)
    with pytest.raises(ClaimError, match=message):
        solution_source(text, "gelu")


def test_large_claims_are_scaled_down_for_the_simulator(tmp_path):
    text = STATEMENT.replace("rows = 96, cols = 3072", "rows = 65536, cols = 65536")
    reference = (HERE / "gelu_reference.py").read_text()
    folder = written(tmp_path, s__toml=text, gelu_reference__py=reference, k__py="x")
    problem = read_claim(folder / "k.py", folder / "s.toml").problem
    for dims in problem.train[Scale.SIM]:
        assert 2 * dims["rows"] * dims["cols"] <= SIM_ELEMENTS
    assert problem.train[Scale.FULL][0] == {"rows": 65536, "cols": 65536}


def test_the_oracle_is_wider_than_the_reference():
    problem = read_claim(HERE / "gelu_cached.py", HERE / "gelu.toml").problem
    workload = Workload({"rows": 3, "cols": 5}, Split.TRAIN, Kind.TRAIN)
    inputs = problem.inputs(workload, torch.Generator().manual_seed(0))
    (exact,), (reference,) = problem.oracle(**inputs), problem.reference(**inputs)
    assert (exact.dtype, reference.dtype) == (torch.float64, torch.bfloat16)
    assert not torch.equal(exact, exact.float().double())


@pytest.mark.sweep
def test_inputs_that_cannot_tell_wrong_from_right_are_refused(tmp_path):
    reference = "def gelu(x):\n    return x * 0\n"
    folder = written(tmp_path, s__toml=STATEMENT, gelu_reference__py=reference, k__py="x")
    check = _controls(read_claim(folder / "k.py", folder / "s.toml"), Scale.SIM)
    assert check.holds is False
    assert "zeros" in check.text


def test_texts_of_a_kernel_are_inert_in_cards():
    claim = read_claim(HERE / "gelu_cached.py", HERE / "gelu.toml")
    evil = "<script>x</script> | ![a](http://b) @everyone\n# forged"
    card = Card(
        Ruling.FAILS, (CardStatement("right", False, evil),), {}, claim, "sim:gfx942", "modelled",
        {"kernel": "0"},
    )  # fmt: skip
    comment, page = card_markdown(card), card_html(card)
    assert "<script>" not in comment + page
    assert "\n# forged" not in comment
    assert "![a]" not in comment
    assert "@everyone" not in comment
    assert json.dumps(card_data(card))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--kernel", "none.py", "--inputs", "gelu.toml"], 2, "No such file"),
        (["--kernel", "gelu_cached.py", "--inputs", "gelu_cached.py"], 2, "cannot be made"),
        (["--kernel", "gelu_near_zero.py", "--inputs", "gelu_near_zero.toml"], 1, "does not hold"),
    ],
)
def test_the_command_exits_as_the_claim(arguments, status, message, tmp_path):
    out = tmp_path / "card"
    command = [sys.executable, "-m", "kernel_gym", "referee", "--device", "sim:gfx942", *arguments]
    run = subprocess.run([*command, "--out", str(out)], cwd=HERE, capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    assert message in run.stderr + run.stdout
    assert "Traceback" not in run.stderr
    if status == 1:
        assert {p.name for p in out.iterdir()} == {"card.json", "card.html", "comment.md"}
        card = json.loads((out / "card.json").read_text())
        assert card["ruling"] == "does not hold"
        (failed,) = [check["name"] for check in card["checks"] if check["holds"] is False]
        assert failed == "it is right beyond the distributions that the claim states (tiny)"
