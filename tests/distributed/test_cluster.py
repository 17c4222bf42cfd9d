"""Runs on Ray: results, kills, resumption, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import ClusterError, ConfigError
from graphsys.core.progress import SILENT
from graphsys.distributed import cluster, group
from graphsys.distributed import ray as ray_calls
from graphsys.distributed.cluster import Cluster, connected
from graphsys.distributed.group import MAX_RESTARTS
from graphsys.distributed.run import ClusterResult, ClusterRun
from graphsys.distributed.transport.exchange import Exchange, Mailbox
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import Worker, run_until_done
from graphsys.engine.algorithms import get
from graphsys.engine.load_program import load_program
from graphsys.engine.program_run import prepare_program
from tests.advice.case import advised
from tests.clusters import NearPeer
from tests.conftest import Call, Run
from tests.processes import descendants, is_running, running_cluster, wait_for
from tests.stores import edge_chunk, make_store

pytestmark = pytest.mark.e2e

# many short supersteps, so that a kill comes in the middle
LONG = """
import graphsys as gs


class Long(gs.VertexProgram):
    rank = gs.state("float64", default=1.0)
    combine = gs.sum
    max_supersteps = 2000

    def message(self, src, edge):
        return src.rank / src.out_degree

    def update(self, node, message):
        return 0.1 + 0.85 * message + 0.05 * node.rank

    def until(self, totals):
        return self.superstep >= 1200
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    path: Path = tmp_path_factory.mktemp("cluster") / "graph"
    pairs = rng.integers(0, 500, (3000, 2))
    make_store(path, edge_chunk(map(tuple, pairs.tolist())), partitions=4)
    return path


@pytest.fixture(scope="module")
def long_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("programs") / "long.py"
    path.write_text(LONG)
    return f"{path}:Long"


def workers_below(process: int) -> list[int]:
    return [pid for pid, command in descendants(process) if "RemoteWorker" in command]


def prepared(store: Path, program: str, checkpoint: Path | None = None) -> ClusterRun:
    kind = load_program(program)
    work = prepare_program(kind, str(store))
    if checkpoint is not None:
        work = prepare_program(
            kind, str(store), checkpoint=checkpoint, checkpoint_every=100
        )
    return ClusterRun.of(work, program, {}, Cluster.parse("local:2"))


def under_way(run: ClusterRun) -> tuple[threading.Thread, list[ClusterResult]]:
    """Start a run; return its thread, and where its result will be."""
    done: list[ClusterResult] = []
    thread = threading.Thread(target=lambda: done.append(run.run()))
    thread.start()
    return thread, done


def test_the_command_gives_what_one_machine_does(
    store: Path, tmp_path: Path, run_cli: Run
) -> None:
    tables, facts = [], []
    for more in ([], ["--cluster", "local:2"]):
        out = tmp_path / f"{len(more)}.parquet"
        done = run_cli("run", "wcc", store, "-o", out, "--json", *more)
        assert done.returncode == 0, done.stderr
        tables.append(pq.read_table(out))
        facts.append(json.loads(done.stdout))
    assert tables[0].equals(tables[1])
    assert facts[1].keys() - facts[0].keys() == {"workers"}
    assert facts[1]["workers"] == 2


@pytest.mark.slow
def test_what_is_sent_is_printed(store: Path, tmp_path: Path, run_cli: Run) -> None:
    out = tmp_path / "out.parquet"
    done = run_cli("run", "wcc", store, "-o", out, "--cluster", "local:2")
    assert done.returncode == 0, done.stderr
    lines = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert lines["workers"] == "2"
    assert lines["restarts"] == "0"
    assert int(lines["bytes sent"].replace(",", "")) > 0


@pytest.mark.slow
def test_a_stopped_worker_is_waited_for(
    store: Path, tmp_path: Path, long_program: str
) -> None:
    thread, done = under_way(prepared(store, long_program, tmp_path / "kept"))
    wait_for((tmp_path / "kept" / "checkpoint.json").exists)
    below = workers_below(os.getpid())
    os.kill(below[0], signal.SIGSTOP)
    time.sleep(3)
    assert thread.is_alive()
    assert workers_below(os.getpid()) == below
    os.kill(below[0], signal.SIGCONT)
    thread.join(120)
    (result,) = done
    assert result.restarts == 0
    assert len(result.bytes_sent) == result.supersteps == 1200
    assert max(row["waiting_seconds"] for row in result.per_worker) > 2
    assert min(row["work_seconds"] for row in result.per_worker) > 0
    alone = prepare_program(load_program(long_program), str(store)).run()
    found, expected = (t.column("value").to_numpy() for t in (result.table, alone.table))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_killed_driver_leaves_no_process_and_resumes(
    store: Path, tmp_path: Path, long_program: str, graphsys_command: str, run_cli: Run
) -> None:
    kept, out = tmp_path / "kept", tmp_path / "out.parquet"
    words = [
        "run",
        long_program,
        str(store),
        "-o",
        str(out),
        "--cluster",
        "local:2",
        "--checkpoint",
        str(kept),
        "--checkpoint-every",
        "100",
    ]
    driver = subprocess.Popen(
        [graphsys_command, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for((kept / "checkpoint.json").exists)
    below = workers_below(driver.pid)
    assert len(below) == 2
    driver.kill()
    driver.wait()
    wait_for(lambda: not any(is_running(pid) for pid in below), 10)
    done = run_cli(*words, "--resume", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["supersteps"] == 1200
    alone = prepare_program(load_program(long_program), str(store)).run()
    found = pq.read_table(out).column("value").to_numpy()
    np.testing.assert_allclose(found, alone.table.column("value").to_numpy(), rtol=1e-9)


def test_ctrl_c_ends_the_workers_and_leaves_no_output(
    store: Path, tmp_path: Path, graphsys_command: str
) -> None:
    endless = LONG.replace("1200", "1_000_000").replace("2000", "1_000_000")
    program = tmp_path / "endless.py"
    program.write_text(endless)
    kept, out = tmp_path / "kept", tmp_path / "out.parquet"
    words = [
        "run",
        f"{program}:Long",
        str(store),
        "-o",
        str(out),
        "--cluster",
        "local:2",
        "--checkpoint",
        str(kept),
        "--checkpoint-every",
        "20",
    ]
    with subprocess.Popen(
        [graphsys_command, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as driver:
        wait_for((kept / "checkpoint.json").exists)
        below = workers_below(driver.pid)
        driver.send_signal(signal.SIGINT)
        _, said = driver.communicate(timeout=30)
    assert driver.returncode == 130, said
    assert "Traceback" not in said
    assert len(below) == 2
    wait_for(lambda: not any(is_running(pid) for pid in below), 10)
    assert not out.exists()


@pytest.mark.slow
def test_workers_lost_again_and_again_end_the_run(
    store: Path, long_program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphsys.distributed.group.MAX_RESTARTS", 0)
    assert MAX_RESTARTS == 3
    run = prepared(store, long_program)
    found: list[BaseException] = []

    def attempt() -> None:
        try:
            run.run()
        except ClusterError as err:
            found.append(err)

    thread = threading.Thread(target=attempt)
    thread.start()
    wait_for(lambda: len(workers_below(os.getpid())) == 2)
    lost = time.monotonic()
    os.kill(workers_below(os.getpid())[1], signal.SIGKILL)
    thread.join(60)
    assert time.monotonic() - lost < 10  # noticed, and Ray ended
    assert "workers were lost 1 times; look at the memory" in str(found[0])


def test_a_running_cluster_is_connected_to_and_left_as_it_is(
    store: Path, tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run_cli("run", "wcc", store, "--cluster", "127.0.0.1:1").stderr
    start = advised(
        missing, "graphsys/distributed/cluster.py", r"start one by `ray (start --head)` and"
    )
    with running_cluster(monkeypatch, start=start[1]) as address:
        for name in ("wcc", "pagerank"):  # the second finds it as the first did
            out = tmp_path / f"{name}.parquet"
            done = run_cli("run", name, store, "-o", out, "--json", "--cluster", address)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["workers"] == 2
        # what a worker writes there is as safe for spreadsheets as was chosen here
        program = (
            "import ray\n"
            "from graphsys.distributed.cluster import Cluster, connected\n"
            "from graphsys.storage import text_cells\n"
            "text_cells.choose_safe_cells(True)\n"
            f"with connected(Cluster.parse({address!r})):\n"
            "    print(ray.get(ray.remote(text_cells.chosen).remote()))\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert told.stdout.split() == ["{'GRAPHSYS_SAFE_CELLS':", "'1'}"]


class Kept(gs.VertexProgram):
    """Keeps what neighbors of the simple graph sent."""

    simple = True
    heard = gs.edge_state("float64")
    value = gs.state("float64", default=1.0)
    schedule, stores, combine, max_supersteps = "all", "heard", gs.sum, 2

    def message(self, src: Any, edge: Any) -> Any:
        return src.value + edge.heard

    def update(self, node: Any, message: Any) -> Any:
        return message


def test_states_of_edges_of_the_simple_graph_are_refused(store: Path) -> None:
    work = prepare_program(Kept, str(store))
    with pytest.raises(ConfigError, match="Kept keeps states of edges of the simple graph"):
        ClusterRun.of(work, "Kept", {}, Cluster.parse("local:2"))


def test_a_cluster_that_is_not_there(run_cli: Run, store: Path) -> None:
    done = run_cli("run", "wcc", store, "--cluster", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: no Ray cluster answers at 127")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wcc", "--cluster", "local:9"], "has 4 partitions, too few for 9 workers"),
        (["wcc", "--cluster", "local:0"], "takes 1 to 64 workers, got 'local:0'"),
        (["wcc", "--cluster", "here"], "takes local:N, or HOST:PORT"),
        (["leiden", "--cluster", "local:2"], "leiden has no vertex program"),
        (["wcc", "--cluster", "local:2", "--memory", "1GB"], "memory does not go with"),
        (["wcc", "--cluster", "local:2", "--check"], "check does not go with --cluster"),
        (
            ["wcc", "--cluster", "local:2", "--implementation", "native"],
            "a cluster runs vertex programs; leave out --implementation native",
        ),
    ],
)
def test_what_a_cluster_does_not_take_is_said_in_one_line(
    words: list[str], message: str, store: Path, run_cli: Run
) -> None:
    name, *options = words
    done = run_cli("run", name, store, *options)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last


def test_edges_in_memory_two_connections_and_too_few_processors_are_refused(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = gs.Topology.from_edges(np.array([0, 1]), np.array([1, 0]), num_nodes=2)
    work = get("wcc").prepare(edges, implementation="program")
    with pytest.raises(ConfigError, match="a cluster takes a graph's folder"):
        ClusterRun.of(work, "wcc", {}, Cluster.parse("local:2"))
    native = get("wcc").prepare(str(store), implementation="native")
    with pytest.raises(ConfigError, match="wcc is native, a cluster runs vertex programs"):
        ClusterRun.of(native, "wcc", {}, Cluster.parse("local:2"))
    more = pytest.raises(ConfigError, match="has the cluster local:1 open and cannot open")
    monkeypatch.setattr(group, "START_S", 2.0)
    with connected(Cluster.parse("local:1")):
        with more, connected(Cluster.parse("local:2")):
            pass
        two = ProgramWork(graph=str(store), algorithm="wcc")
        message = r"within 2 s; look whether the cluster has 2 free processors \(ray status"
        with pytest.raises(ClusterError, match=message):
            run_until_done(two, 2, SILENT)


def test_another_ones_ray_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_calls, "is_connected", lambda: True)
    refused = pytest.raises(ConfigError, match="connected to a Ray cluster; leave that")
    with refused, connected(Cluster.parse("local:1")):
        pass


def test_runs_within_an_open_cluster_use_it(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = gs.algorithms.wcc(str(store)).table
    starts, start = list[int](), ray_calls.start_here

    def counted(num_processors: int, *arguments: Any) -> None:
        starts.append(num_processors)
        start(num_processors, *arguments)

    monkeypatch.setattr(ray_calls, "start_here", counted)
    with connected(Cluster.parse("local:2")) as workers:
        assert workers == 2
        for where in ("local:2", "local:1", "local:2"):
            work = get("wcc").prepare(str(store), implementation="program")
            run = ClusterRun.of(work, "wcc", {}, Cluster.parse(where))
            assert run.run().table.equals(expected)
    assert starts == [2]
    with connected(Cluster.parse("local:1")):
        pass
    assert starts == [2, 1]


def test_who_leaves_an_open_cluster_last_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("is_connected", "keep_off_stdout"):
        monkeypatch.setattr(ray_calls, name, lambda: False)
    monkeypatch.setattr(ray_calls, "start_here", lambda *_: calls.append("start"))
    monkeypatch.setattr(ray_calls, "leave", lambda: calls.append("leave"))
    two, first, second = Cluster.parse("local:2"), ExitStack(), ExitStack()
    first.enter_context(connected(two))
    second.enter_context(connected(two))  # as another thread does meanwhile
    first.close()
    assert calls == ["start"]
    second.close()
    assert calls == ["start", "leave"]
    with pytest.raises(ZeroDivisionError), connected(two):
        _ = 1 / 0
    assert calls == ["start", "leave"] * 2


def test_mail_is_kept_once_and_waited_for_with_a_limit() -> None:
    mailbox, worker = Mailbox(), Worker()
    peers = [NearPeer(worker), NearPeer(worker)]
    exchange = Exchange(0, peers, mailbox, timeout_s=0.1)
    for _ in range(2):  # a call that comes twice is the same call
        mailbox.put(1, 1, (np.arange(3),))
    (arrived,) = exchange.all_to_all([(np.arange(5),)])
    assert arrived[0].tolist() == [0, 1, 2]
    mailbox.put(1, 1, ("late",))  # an exchange that is over takes nothing
    assert exchange.sent_bytes == 40
    with pytest.raises(ClusterError, match="worker 1 sent nothing for 0 s; look at its"):
        exchange.all_to_all([()])


def test_ray_missing_is_one_line(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphsys.core.errors import MissingDependencyError

    monkeypatch.setitem(sys.modules, "ray", None)
    refused = pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[ray\]'")
    with refused, connected(Cluster.parse("local:1")):
        pass


def test_a_machine_too_busy_to_start_ray_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = pytest.importorskip("ray")

    def slow(**_: Any) -> None:
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", slow)
    with (
        pytest.raises(
            ClusterError, match="did not start on this machine: The current node"
        ),
        connected(Cluster.parse("local:2")),
    ):
        pass


def test_folders_of_ray_that_others_hold_or_never_claimed_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another container's processes are not seen here, and its folders are."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held, lock = cluster._own_folder()
    dead, other = cluster._own_folder()
    os.close(other)
    theirs = tmp_path / "graphsys-ray-999999-abc"  # as before there were claims
    theirs.mkdir()
    cluster._sweep()
    assert sorted(tmp_path.iterdir()) == sorted([held, theirs])
    assert not dead.exists()
    os.close(lock)


# From here on tests share one cluster, which stays open to the end of the file: those that
# start one themselves, or count how often one is started, stand above.


@pytest.mark.usefixtures("two_workers")
def test_a_killed_worker_is_replaced_and_the_result_is_the_same(
    store: Path, tmp_path: Path, long_program: str, capfd: pytest.CaptureFixture[str]
) -> None:
    thread, done = under_way(prepared(store, long_program, tmp_path / "kept"))
    wait_for((tmp_path / "kept" / "checkpoint.json").exists)
    at = json.loads((tmp_path / "kept" / "checkpoint.json").read_text())
    assert at["content"]["position"]["superstep"] < 1100  # in the middle
    os.kill(workers_below(os.getpid())[0], signal.SIGKILL)
    thread.join(120)
    (result,) = done
    assert result.restarts == 1
    assert len(result.bytes_sent) < 1200  # it did not begin again
    alone = prepare_program(load_program(long_program), str(store)).run()
    found, expected = (t.column("value").to_numpy() for t in (result.table, alone.table))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert result.supersteps == alone.supersteps
    printed = capfd.readouterr()
    assert printed.out == ""  # where the answer of a command is
    assert "A worker died" in printed.err  # as Ray says


@pytest.mark.usefixtures("two_workers")
def test_doctor_asks_every_node(call: Call) -> None:
    code, out, said = call("doctor", "--cluster", "local:2", "--json")
    assert code == 0, said
    facts = json.loads(out)
    assert facts["workers"] == 2
    assert [node["problems"] for node in facts["nodes"]] == [[]]


VECTORS = """
import graphsys as gs
import numpy as np


class Spread(gs.VertexProgram):
    place = gs.state("float64", shape=(5,))
    largest = gs.state("int64")
    moved = gs.aggregator(gs.maximum)
    combine, results = gs.mean, ("place", "largest")

    def init(self, node):
        return gs.random(3, node.id, gs.component), 0

    def message(self, src):
        return src.place

    def update(self, node, message):
        return 0.5 * node.place + 0.5 * message, int(np.argmax(message))

    def aggregate(self, before, node):
        return np.max(abs(node.place - before.place))

    def until(self, totals):
        return totals["moved"] < 0.05
"""


@pytest.mark.usefixtures("two_workers")
def test_vectors_on_a_cluster_have_the_bits_of_one_machine(
    store: Path, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "vectors.py").write_text(VECTORS)
    program = f"{tmp_path}/vectors.py:Spread"
    tables = []
    for name, options in {"one": [], "two": ["--cluster", "local:2"]}.items():
        out = tmp_path / f"{name}.parquet"
        code, _, said = call("run", program, store, "-o", out, *options)
        assert code == 0, said
        tables.append(pq.read_table(out).sort_by("id"))
    assert tables[0].column("place").type == pa.list_(pa.float64(), 5)
    assert len(set(map(str, tables[0].column("place").to_pylist()))) > 400
    assert tables[1].equals(tables[0])


@pytest.mark.usefixtures("two_workers")
def test_a_profile_tells_of_every_worker(store: Path, tmp_path: Path, call: Call) -> None:
    out, page = tmp_path / "out.parquet", tmp_path / "report.html"
    command = ["run", "pagerank", store, "-o", out, "--cluster", "local:2"]
    code, _, said = call("profile", "--level", "L0", "-o", page, "--", *command)
    assert code == 0, said
    report = json.loads(page.with_suffix(".json").read_text())
    found = report["cluster"]
    assert [row["rank"] for row in found["workers"]] == [0, 1]
    assert all(row["edges"] > 0 for row in found["workers"])
    assert sum(row["nodes"] for row in found["workers"]) == len(pq.read_table(out))
    assert len(found["supersteps"]) == len(report["supersteps"]) > 1
    largest = max(row["sent_bytes"] for row in found["supersteps"])
    assert found["bound_bytes"] <= largest <= 2 * found["bound_bytes"]
    assert found["load_imbalance"] >= 1
    lanes = [lane["name"] for lane in report["timeline"]["lanes"]]
    assert {"worker 0 waits", "worker 1 waits"} <= set(lanes)
