"""Free blocks are placed so that sequences stay in runs."""

from prefix_layer.free_blocks import FreeBlocks


def test_blocks_follow_when_those_behind_are_free() -> None:
    """A growing sequence gets the ids behind its last one."""
    free = FreeBlocks(10)
    assert free.take(3, after=None, room=2) == [0, 1, 2]
    assert free.take(2, after=2, room=2) == [3, 4]
    assert len(free) == 5


def test_second_sequence_leaves_room_when_there_is_space() -> None:
    """A new sequence is placed behind the room of the one before."""
    free = FreeBlocks(20)
    assert free.take(3, after=None, room=4) == [0, 1, 2]
    assert free.take(3, after=None, room=4) == [7, 8, 9]
    assert free.take(4, after=2, room=4) == [3, 4, 5, 6]


def test_all_blocks_can_be_had_when_they_are_scattered() -> None:
    """Fragmentation costs runs, never blocks."""
    free = FreeBlocks(8)
    free.take(8, after=None, room=0)
    for block_id in (1, 3, 4, 7):
        free.add(block_id)
    assert sorted(free.take(4, after=1, room=9)) == [1, 3, 4, 7]
    assert len(free) == 0


def test_run_is_found_when_it_lies_before_the_cursor() -> None:
    """The search for a run goes round."""
    free = FreeBlocks(8)
    free.take(6, after=None, room=0)
    for block_id in (0, 1, 2):
        free.add(block_id)
    assert free.take(3, after=5, room=0) == [6, 7, 0]
    assert free.take(2, after=None, room=0) == [1, 2]
