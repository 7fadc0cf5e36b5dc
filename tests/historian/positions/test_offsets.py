"""Offsets of topics: the next one of each partition, compared partition by partition."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian import codec
from historian.errors import PositionError
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import KAFKA, LogPosition, TopicOffsets, parse_position
from historian.positions.places import Place
from historian.schema.edits import CreateTable
from models.timelines import create

Model = dict[tuple[str, int], int]
models = st.dictionaries(st.tuples(st.sampled_from(["a.b", "Q_-"]), st.integers(0, 2)), st.integers(0, 9), max_size=5)


def read(model: Model) -> set[tuple[str, int, int]]:
    return {(topic, partition, n) for (topic, partition), at in model.items() for n in range(at)}


@settings(deadline=None, max_examples=300)
@given(models, models, models)
def test_a_vector_stands_for_all_messages_before_it(left: Model, right: Model, third: Model) -> None:
    a, b, c = map(TopicOffsets.of, (left, right, third))

    assert (read(left) >= read(right)) == a.covers(b) == (not b.subtract(a))
    assert read(left) | read(right) == read(dict(a.union(b)))
    assert (a.union(b), a) == (b.union(a), a.union(a))
    assert a.union(b).covers(a)
    assert len(read(left) - read(right)) == a.since(b)
    assert all(((t, p, n) in read(left)) == a.contains_gtid(f"{t}:{p}:{n}") for t, p, n in read(right))
    if a.covers(b) and b.covers(c):
        assert a.covers(c)


@settings(deadline=None, max_examples=200)
@given(models)
def test_text_and_pickle_and_json_keep_a_vector(model: Model) -> None:
    a = TopicOffsets.of(model)
    position = LogPosition(flavor=KAFKA, gtids=str(a), file="", offset=0)

    assert (a, a, a) == (TopicOffsets.parse(str(a)), pickle.loads(pickle.dumps(a)), position.offsets)
    assert position == codec.load(LogPosition, codec.dump(LogPosition, position))
    assert str(a) == str(position)


@pytest.mark.parametrize(
    "text", ["a", "a:0", "a:x:1", "a:0:1,a:0:2", "a:0:-1", "ä:0:1", "a b:0:1", "a:0:99999999999999999999"]
)
def test_what_is_no_vector_is_refused_with_the_part(text: str) -> None:
    with pytest.raises(PositionError, match="TOPIC:PARTITION:OFFSET"):
        parse_position(text, KAFKA)


def test_binlogs_and_topics_do_not_compare() -> None:
    topics, binlog = parse_position("a:0:1", KAFKA), parse_position("0-1-7", "mariadb")

    with pytest.raises(PositionError):
        topics.covers(binlog)
    with pytest.raises(PositionError):
        binlog.covers(topics)


def test_a_history_finds_versions_by_offset() -> None:
    """Topics share no order; in one partition, whose name has letter case, a row takes the last version at or before it."""

    def entry(number: int, place: str | None, columns: str) -> TimelineEntry:
        partition, _, offset = (place or "").rpartition(":")
        return TimelineEntry(
            number=number,
            place=None if place is None else Place(gtid=place, file=partition, offset=int(offset), ordinal=0),
            position=LogPosition(flavor=KAFKA, gtids="Shop.T:0:0,Shop.U:0:0", file="", offset=0),
            edits=() if place is None else (create(number, f"t{number}", *columns),),
            statement="",
            database="",
            event_time_us=0,
            server="",
        )

    history = History.of([entry(1, None, ""), entry(2, "Shop.T:0:3", "a"), entry(3, "Shop.U:0:5", "a")])
    history.resolve(parse_position("Shop.T:0:9,Shop.U:0:9", KAFKA))

    def at(table: str, vector: str, message: str) -> int:
        return history.at(TableName("shop", table), parse_position(vector, KAFKA), ordinal=1, gtid=message).number

    assert (2, 3) == (
        at("t2", "Shop.T:0:3,Shop.U:0:0", "Shop.T:0:3"),
        at("t3", "Shop.T:0:0,Shop.U:0:7", "Shop.U:0:7"),
    )
    assert isinstance(history.entries[1].edits[0], CreateTable)
