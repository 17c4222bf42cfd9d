"""Parts of a training's memory: they add up, and nobody who does not ask pays for them."""

from graphsys.core.events import recording
from graphsys.training.memory_split import MEMORY, PARTS, split_of, tell_memory


def test_parts_add_up_to_the_whole() -> None:
    known = {"parameters": 30, "activations": 20, "temporary": 5}
    for total in (55, 60, 95, 200):
        split = split_of(total, 40, known)
        assert list(split) == list(PARTS)
        assert sum(split.values()) == total
        assert split["process"] == min(40, total - 55)
        assert min(split.values()) >= 0


def test_what_is_known_stays_where_the_whole_is_less() -> None:
    split = split_of(10, 40, {"parameters": 30})
    assert {name: size for name, size in split.items() if size} == {"parameters": 30}


def test_nothing_is_counted_unless_a_profile_asks() -> None:
    def known() -> dict[str, int]:
        raise AssertionError

    tell_memory("forward", 0, known)
    with recording():
        tell_memory("forward", 0, known)
    with recording({MEMORY: lambda _: None}) as recorder:
        tell_memory("forward", 7, lambda: {"parameters": 3})
    (told,) = [event for event in recorder.events if event.name == MEMORY]
    assert told.attributes["phase"] == "forward"
    parts = told.attributes["parts"]
    assert isinstance(parts, dict)
    assert parts["process"] == 7
    assert sum(parts.values()) == told.value > 1 << 20
