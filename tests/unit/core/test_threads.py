import threading
import time

import pytest

from graphsys.core.threads import ThreadTeam
from tests.conftest import Run


class Interrupted:
    """A lock at which a Ctrl-C arrives, once."""

    def __init__(self, lock: threading.Lock) -> None:
        self.lock, self.is_over = lock, False

    def acquire(self) -> None:
        if not self.is_over:
            self.is_over = True
            raise KeyboardInterrupt
        self.lock.acquire()

    def release(self) -> None:
        self.lock.release()


def test_a_team_that_is_interrupted_as_it_waits_ends_and_begins_nothing_again() -> None:
    calls: list[int] = []
    has_woken = threading.Event()

    def kernel(index: int) -> None:
        calls.append(index)
        if index == 0:
            has_woken.wait(60)  # what has not woken by the interruption begins nothing
        else:
            has_woken.set()
            time.sleep(0.1)

    with ThreadTeam(2) as team:
        team._ended[1] = Interrupted(team._ended[1])  # type: ignore[call-overload]
        with pytest.raises(KeyboardInterrupt):
            team.run(kernel)
    assert sorted(calls) == [0, 1]


class Late:
    """A lock at which a thread arrives late."""

    def __init__(self, lock: threading.Lock) -> None:
        self.lock = lock
        self.release, self.locked = lock.release, lock.locked

    def acquire(self) -> None:
        time.sleep(0.3)
        self.lock.acquire()


def test_a_team_ends_whose_thread_had_not_woken_when_it_was_interrupted() -> None:
    with ThreadTeam(2) as team:
        team._begin[1] = Late(team._begin[1])  # type: ignore[call-overload]
        team._ended[1] = Interrupted(team._ended[1])  # type: ignore[call-overload]
        with pytest.raises(KeyboardInterrupt):
            team.run(lambda _index: None)
    assert team._threads == []


def test_the_first_error_is_raised_after_all_have_ended() -> None:
    ended: list[int] = []

    def kernel(index: int) -> None:
        if index == 0:
            raise ValueError("the first")
        time.sleep(0.05)
        ended.append(index)

    with ThreadTeam(3) as team:
        with pytest.raises(ValueError, match="the first"):
            team.run(kernel)
        assert sorted(ended) == [1, 2]
        assert team.run(lambda index: 2 * index) == [0, 2, 4]


FIRST = """
import os, sys
os.getloadavg = lambda: ({load}, 0.0, 0.0)
os.cpu_count = lambda: 4
import graphsys.gnn
assert "torch" not in sys.modules  # which reads it when it is loaded
print(os.environ.get("OMP_WAIT_POLICY"))
"""


@pytest.mark.parametrize(
    ("load", "said", "expected"),
    [(2.5, "", "passive"), (2.0, "", "None"), (2.5, "active", "active")],
)
def test_torch_waits_in_peace_where_others_work(
    load: float, said: str, expected: str, run_python: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if said:
        monkeypatch.setenv("OMP_WAIT_POLICY", said)
    done = run_python(FIRST.format(load=load))
    assert done.stdout.strip() == expected, done.stderr
