"""A user's own module in ``train gnn``, from its file; and whose word executes it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn.model_spec import checksum_of
from graphsys.storage import Graph
from tests.conftest import Call
from tests.runs import reseal
from tests.unit.gnn.conftest import Store

FEW = ("--set", "epochs=2", "--set", "dim=8", "--set", "batch_size=10")
HEAD = "import torch\nfrom torch import nn\nfrom graphsys.gnn import spmm\n"
SAGE = """
class Net(nn.Module):
    def __init__(self, num_in, num_out):
        super().__init__()
        self.own = nn.Linear(num_in, num_out)
        self.others = nn.Linear(num_in, num_out, bias=False)

    def forward(self, rows, x_src, x_dst):
        return self.own(x_dst) + self.others(spmm(rows, x_src, reduce="mean"))
"""
BASE = """
class Net(nn.Module):
    def __init__(self, num_in, num_out):
        super().__init__()
        self.own = nn.Linear(num_in, num_out)
"""
FORWARD = "    def forward(self, rows, x_src, x_dst): "
FAULTS = {
    "too few rows": (
        BASE + FORWARD + "return self.own(x_dst)[:1]",
        r"my\.py:9: forward returned \[1, 8\] of torch.float32, expected a float tensor",
    ),
    "no tensor": (
        BASE + FORWARD + "pass",
        r"my\.py:9: forward returned NoneType, expected",
    ),
    "whole numbers": (
        BASE + FORWARD + "return self.own(x_dst).long()",
        r"my\.py:9: forward returned \[\d+, 8\] of torch.int64, expected a float tensor",
    ),
    "an exception in forward": (
        BASE + FORWARD + "\n        return {}['none']",
        r"my\.py:10: KeyError: 'none'",
    ),
    "an exception in the constructor": (
        BASE + "        raise OSError('no file')\n" + FORWARD + "pass",
        r"my\.py:9: OSError: no file \(a layer is made as Net\(8, 8\)",
    ),
    "other arguments of the constructor": (
        "class Net(nn.Module):\n    def __init__(self):\n        pass\n" + FORWARD + "pass",
        r"my\.py:7: TypeError: Net.__init__\(\) takes 1 .* \(a layer is made as Net\(8",
    ),
    "other arguments of forward": (
        BASE + "    def forward(self, x, edge_index): return self.own(x)",
        r"my\.py:9: forward of Net cannot be called as a layer; expected forward\(self",
    ),
    "no forward": (BASE, r"my\.py:5: forward of Net cannot be called as a layer"),
    "a lazy module": (
        BASE.replace("Linear(num_in, ", "LazyLinear(") + FORWARD + "return self.own(x_dst)",
        r"my\.py:9: parameter own.weight of Net has no shape yet; expected no Lazy modules",
    ),
    "nothing to learn": (
        "class Net(nn.Module):\n    def __init__(self, i, o): super().__init__()\n"
        + FORWARD
        + "return x_dst",
        r"model .*my\.py:Net has nothing to learn: its layers have no parameters",
    ),
    "gradients that are gone": (
        BASE + FORWARD + "h = self.own(x_dst).exp(); h += 1; return h",
        r"my\.py:Net: its gradients cannot be computed: .*modified by an inplace operation",
    ),
    "no module": ("Net = 7", r"my\.py has no class 'Net'; its models are: none"),
    "another class": (
        SAGE.replace("Net", "Ner"),
        r"has no class 'Net'; its models are: Ner",
    ),
    "a typo": ("def f(:", r"my\.py:4: invalid syntax"),
    "a package that is missing": (
        "import nowhere_to_be_found",
        r"my\.py:4: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
    ),
}


@pytest.fixture
def call(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return a function that runs a command in a folder, with a user's cache of its own."""
    monkeypatch.setenv("GRAPHSYS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    return call


@pytest.fixture
def graph(groups: Store) -> Graph:
    return groups(2)


@pytest.fixture
def trained(graph: Graph, call: Call) -> Path:
    """Return a run of the module in ``my.py``."""
    Path("my.py").write_text(HEAD + SAGE)
    code, _, said = call(
        "train", "gnn", graph.path, "-o", "run", "--set", "model=my.py:Net", *FEW
    )
    assert code == 0, said
    return Path("run")


def forget() -> None:
    """Begin as on a machine where the user has trained with nothing yet."""
    shutil.rmtree("cache/models")


@pytest.mark.usefixtures("trained")
def test_a_run_of_a_module_is_used_like_any_other(call: Call, graph: Graph) -> None:
    for words in (
        ("evaluate", "run"),
        ("nearest", "run", 105, "-k", 2),
        ("predict", "run", "-o", "classes.csv"),
        ("export", "run", "-o", "rows.csv"),
        ("train", "gnn", graph.path, "-o", "run", "--resume", "--set", "epochs=3"),
        ("info", "run"),
    ):
        code, _, said = call(*words)
        assert code == 0, said
    assert gnn.open_run("run").state.epoch == 3


def test_a_module_learns_what_the_same_layer_of_ours_does(
    graph: Graph, call: Call, trained: Path
) -> None:
    """GraphSAGE by hand begins with other draws, and has the same network."""
    ours = gnn.train(graph, gnn.GnnConfig(model="sage", epochs=40, dim=8), "ours").metrics
    own = gnn.GnnConfig(model="my.py:Net", epochs=40, dim=8)
    mine = gnn.train(graph, own, "mine").metrics
    assert mine["valid_accuracy"] > 0.8
    assert abs(mine["valid_accuracy"] - ours["valid_accuracy"]) < 0.2


def test_resumed_equals_trained_at_once(graph: Graph, call: Call) -> None:
    Path("my.py").write_text(HEAD + SAGE)
    config: dict[str, Any] = {
        "model": "my.py:Net",
        "dim": 8,
        "batch_size": 10,
        "deterministic": True,
    }
    gnn.train(graph, gnn.GnnConfig(epochs=4, **config), "once")
    gnn.train(graph, gnn.GnnConfig(epochs=2, **config), "twice")
    gnn.train(graph, gnn.run_config("twice", ["epochs=4"]), "twice", resume=True)
    once, twice = gnn.open_run("once").output(), gnn.open_run("twice").output()
    np.testing.assert_array_equal(once, twice)


def test_a_spec_gives_a_module_what_else_it_needs(graph: Graph, call: Call) -> None:
    text = "from graphsys.gnn.model_spec import ModelSpec\n" + HEAD + SAGE
    text += "def make(config, num_in, num_out, is_last):\n    return Net(num_in, num_out)\n"
    Path("my.py").write_text(text + "SPEC = ModelSpec(name='mine', make_layer=make)\n")
    Path("my.toml").write_text('model = "my.py:SPEC"\nepochs = 1\ndim = 4\n')
    assert call("train", "gnn", graph.path, "-o", "run", "--config", "my.toml")[0] == 0
    assert call("evaluate", "run")[0] == 0


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_in_one_line(graph: Graph, call: Call, name: str) -> None:
    text, message = FAULTS[name]
    Path("my.py").write_text(HEAD + text + "\n")
    given = ("--set", "model=my.py:Net", *FEW)
    code, _, said = call("train", "gnn", graph.path, "-o", "run", *given)
    errors = [line for line in said.splitlines() if "error:" in line]
    assert code in (1, 2)
    assert len(errors) == 1
    assert "Traceback" not in said
    assert re.search(message, errors[0]), errors[0]


def test_a_file_that_is_missing(graph: Graph, call: Call) -> None:
    code, _, said = call(
        "train", "gnn", graph.path, "-o", "run", "--set", "model=no.py:Net"
    )
    assert code == 2
    assert "no.py: there is no such file" in said


@pytest.mark.usefixtures("trained")
def test_a_file_that_is_gone_or_has_changed(call: Call, graph: Graph) -> None:
    Path("my.py").rename("moved.py")
    code, _, said = call("evaluate", "run")
    assert code == 2
    assert (
        "there is no such file; restore it, or say where it is: --model FILE.py:Net" in said
    )
    assert call("evaluate", "run", "--model", "moved.py:Net")[0] == 0
    Path("my.py").write_text("# more\n" + HEAD + SAGE)
    code, _, said = call("predict", "run", "-o", "classes.csv")
    assert code == 2
    assert "that file has changed since; restore it, or have it used as it is" in said
    assert call("predict", "run", "-o", "classes.csv", "--model", "my.py:Net")[0] == 0
    resume = ("train", "gnn", graph.path, "-o", "run", "--resume", "--set", "epochs=3")
    assert call(*resume)[0] == 2
    assert call(*resume, "--set", "model=moved.py:Net")[0] == 0
    assert call("evaluate", "run")[0] == 0  # the run knows where it lies now
    code, _, said = call(*resume, "--set", "model=moved.py:Other")
    assert code == 2


@pytest.mark.usefixtures("trained")
def test_a_strangers_run_executes_nothing(call: Call, graph: Graph) -> None:
    """A run, its settings and its model's file, as they come from somebody else."""
    forget()
    Path("my.py").write_text("open('executed', 'w').close()\n" + HEAD + SAGE)
    content = Path("run/run.json")
    seen = checksum_of(Path("my.py").read_bytes())
    _forge(content, seen)
    for words in (
        ("evaluate", "run"),
        ("nearest", "run", 105),
        ("predict", "run", "-o", "classes.csv"),
        ("export", "run", "-o", "rows.csv"),
        ("train", "gnn", graph.path, "-o", "run", "--resume", "--set", "epochs=3"),
        ("train", "gnn", graph.path, "-o", "new", "--config", "run/config.toml"),
        ("train", "gnn", graph.path, "-o", "run", "--resume", "--set", "model=sage"),
    ):
        code, _, said = call(*words)
        assert code == 2, words
        assert "error:" in said
    for words in (("info", "run"), ("plot", "run"), ("verify", "run")):
        call(*words)
    with pytest.raises(
        ConfigError, match="would be executed and that you have not trained"
    ):
        gnn.open_run("run")
    assert not Path("executed").exists()
    assert call("evaluate", "run", "--model", "my.py:Net")[0] == 0
    assert Path("executed").exists()


def _forge(content: Path, seen: str) -> None:
    """Have a run say that it was trained with a file of another checksum."""
    found = json.loads(content.read_text())
    assert found["model_digest"].startswith("sha256:")
    found["model_digest"] = seen
    content.write_text(json.dumps(found))
    reseal(content.parent)


def test_a_module_is_no_business_of_other_runs(graph: Graph, call: Call) -> None:
    Path("my.py").write_text(HEAD + SAGE)
    assert call("train", "gnn", graph.path, "-o", "run", *FEW)[0] == 0
    code, _, said = call("evaluate", "run", "--model", "my.py:Net")
    assert code == 2
    assert "has the model sage, and none of a file; leave it out" in said
    assert call("train", "embedding", graph.path, "-o", "rows", "--set", "epochs=1")[0] == 0
    code, _, said = call("nearest", "rows", 105, "--model", "my.py:Net")
    assert code == 2
    assert "--model my.py:Net is for runs of networks; leave it out" in said


def test_a_file_is_executed_once_until_it_changes(call: Call) -> None:
    Path("my.py").write_text(
        "with open('runs', 'a') as file: file.write('x')\n" + HEAD + SAGE
    )
    one, two = gnn.GnnConfig(model="my.py:Net"), gnn.GnnConfig(model=str(Path("my.py:Net")))
    assert one == two
    assert one.model == f"{Path('my.py').resolve()}:Net"
    assert Path("runs").read_text() == "x"
    Path("my.py").write_text(
        "with open('runs', 'a') as file: file.write('y')\n" + HEAD + SAGE
    )
    gnn.GnnConfig(model="my.py:Net")
    assert Path("runs").read_text() == "xy"
