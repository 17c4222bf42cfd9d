"""Compiling a program's kernels for Hopper without a GPU, as a user does."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from graphsys.analysis.model.compiled import compile_facts, program_of
from graphsys.core.errors import ConfigError, MissingDependencyError, UnknownNameError
from graphsys.engine import algorithms
from graphsys.engine.codegen.plan import plan_of
from graphsys.engine.codegen.spec import spec_of
from graphsys.engine.codegen.text import functions_of
from graphsys.engine.cuda import offline
from graphsys.engine.cuda.disassembly import count_kinds, count_lines, find_nvdisasm
from tests.conftest import Run


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="cannot compile for 'sm_20'; known targets: sm_90"
    ):
        compile_facts("pagerank", "sm_20")
    with pytest.raises(ConfigError, match="triangle_count is native only"):
        compile_facts("triangle_count", "sm_90")
    with pytest.raises(UnknownNameError, match="unknown algorithm 'pagerang'"):
        compile_facts("pagerang", "sm_90")


def test_instructions_are_counted_by_kind() -> None:
    text = """
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
        /*0020*/                   LDG.E.64.CONSTANT R2, [R2.64] ;
                                                             /* 0x0000 */
        /*0030*/             @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0040*/                   DFMA R4, R2, R6, R4 ;
        /*0050*/                   HMMA.1688 R4, R2, R6, R4 ;
        /*0060*/                   NOP;
    """
    assert count_kinds(text) == {
        "move": 1,
        "control": 1,
        "memory": 1,
        "uniform": 1,
        "fp64": 1,
        "other": 1,
    }


def test_an_instruction_belongs_to_the_innermost_line_of_the_user() -> None:
    text = """
	//## File "m.py", line 30
        /*0000*/                   MOV R1, R2 ;
	//## File "m.py", line 4 inlined at "m.py", line 8
	//## File "m.py", line 8 inlined at "m.py", line 30
	//## File "m.py", line 30
        /*0010*/                   DADD R4, R2, R6 ;
        /*0020*/                   DMUL R4, R2, R6 ;
	//## File "m.py", line 31
        /*0030*/                   EXIT ;
    """
    assert count_lines(text, {8: "p.py:3"}) == {
        "": {"move": 1, "control": 1},
        "p.py:3": {"fp64": 2},
    }


@pytest.mark.parametrize(
    "name", [n for n, it in algorithms.ALGORITHMS.items() if it.program]
)
def test_every_statement_of_a_shipped_program_has_its_line(name: str) -> None:
    plan = plan_of(spec_of(program_of(name)), {"weight": np.dtype(np.float64)})
    for lowered in functions_of(plan):
        lines = lowered.user_lines()
        first = int(lowered.where.rpartition(":")[2])
        places = [int(at.rpartition(":")[2]) for _, at in sorted(lines.items())]
        assert places == sorted(places)  # as in the user's file, and inside the function
        assert places[0] >= first
        assert set(lines) <= set(range(2, lowered.source.count("\n") + 2))


@pytest.mark.e2e
def test_a_listed_program_is_compiled_for_hopper(tmp_path: Path, run_cli: Run) -> None:
    pytest.importorskip("numba_cuda", reason="the gpu extra (numba-cuda) is not installed")
    pytest.importorskip("nvidia.cu13", reason="the CUDA compiler is not installed")
    if shutil.which("ptxas") is None:
        pytest.skip("ptxas is not on PATH")
    program = tmp_path / "tiny.py"
    program.write_text(
        "import graphsys as gs\n\n\n"
        "class Tiny(gs.VertexProgram):\n"
        "    mark = gs.state('int64')\n"
        "    combine = gs.sum\n"
        "    max_supersteps = 1\n\n"
        "    def message(self, src, edge):\n"
        "        return src.mark\n\n"
        "    def update(self, node, message):\n"
        "        if message > 7:\n"
        "            return 1\n"
        "        return message * 3 + self.superstep\n"
    )
    done = run_cli("profile", "--compile", "sm_90", f"{program}:Tiny", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["target"], facts["gpu"]) == ("sm_90", "H100 SXM")
    kernels = {row["name"]: row for row in facts["kernels"]}
    pull = kernels["pull_thread_0"]
    assert 8 <= pull["registers"] <= 128
    assert pull["spill_bytes"] == 0
    assert pull["ctas_per_sm"] >= 2
    if find_nvdisasm() is None:
        assert pull["instructions"] is pull["lines"] is None
    else:
        assert pull["instructions"]["memory"] > 2
        assert pull["instructions"]["control"] > 0
        lines = {row["line"]: row for row in pull["lines"]}
        own = lines[f"{program}:15"]
        assert own["source"] == "return message * 3 + self.superstep"
        assert own["instructions"]["integer"] > 0
        assert lines[None]["instructions"]["memory"] > 2  # the engine's own loop
        told = [sum(row["instructions"].values()) for row in pull["lines"]]
        assert sum(told) == sum(pull["instructions"].values())
        shown = run_cli("profile", "--compile", "sm_90", f"{program}:Tiny")
        assert "tiny.py:15\treturn message * 3 + self.superstep\t" in shown.stdout


def test_compiling_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda it: None if it == "numba_cuda" else find(it),
    )
    monkeypatch.setattr(offline, "find_ptxas", lambda: "ptxas")
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[gpu\]'"):
        compile_facts("pagerank", "sm_90")
