"""Every command of README.md works as it stands, from an installed wheel."""

import re
import shutil
from pathlib import Path

import pytest

from tests.buckets import Bucket
from tests.buckets import bucket as bucket
from tests.buckets import object_server as object_server
from tests.pages import run_script, sections_of
from tests.processes import running_cluster
from tests.wheel_environment import make_environment

pytestmark = pytest.mark.e2e
SECTIONS = sections_of("README.md")
BEFORE = {
    "Graphs that change": """
        head -n 50539 $DATA/CollegeMsg/CollegeMsg.txt > june.csv
        (head -n 1 june.csv; tail -n +50540 $DATA/CollegeMsg/CollegeMsg.txt) > july.csv
        graphsys ingest june.csv -o messages --format csv
        graphsys run pagerank messages -o last.parquet
        graphsys train embedding messages -o june --set epochs=1
    """,
}
"""What a section takes as given: made by commands that other pages show."""
ON_A_CLUSTER = "When one machine is not enough"


def test_every_section_with_commands_is_run() -> None:
    assert {"Set up", "From Python", ON_A_CLUSTER, *BEFORE} == SECTIONS.keys()


@pytest.mark.parametrize("heading", [name for name in SECTIONS if name != ON_A_CLUSTER])
def test_a_section_works_as_it_stands(
    heading: str, tmp_path: Path, base_programs: Path, request: pytest.FixtureRequest
) -> None:
    before, variables = BEFORE.get(heading, ""), {}
    if "$DATA" in before:
        variables["DATA"] = str(request.getfixturevalue("shared_data"))
    script = SECTIONS[heading].script()
    done = run_script(before + script, base_programs, tmp_path, variables)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"# prints (.*)", script)
    assert [line for line in said if line not in done.stdout.splitlines()] == []


@pytest.fixture
def cluster_programs(wheel: Path, tmp_path: Path) -> Path:
    """Return the programs of an environment with the extras that the section names."""
    for package in ("ray", "boto3"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    assert "graphsys[ray]" in SECTIONS[ON_A_CLUSTER].prose
    return make_environment(tmp_path / "environment", wheel, ("ray", "s3"))


def test_the_section_on_clusters_works_with_the_extras_that_it_names(
    tmp_path: Path,
    cluster_programs: Path,
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    before = "graphsys dataset build demo -o shop --partitions 4\n"
    done = run_script(before, cluster_programs, folder)
    assert done.returncode == 0, done.stderr
    graph = folder / "shop"
    for path in graph.rglob("*"):
        if path.is_file():
            bucket.write(f"graph/{path.relative_to(graph)}", path.read_bytes())
    with running_cluster(monkeypatch, cluster_programs) as address:
        script = SECTIONS[ON_A_CLUSTER].script()
        for name, value in (("BUCKET", bucket.name), ("FIRST:6379", address)):
            assert name in script
            script = script.replace(name, value)
        done = run_script(script, cluster_programs, folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "vectors" / "run.json").exists()
    assert (folder / "components.parquet").stat().st_size > 0
    shutil.rmtree(cluster_programs.parent)
