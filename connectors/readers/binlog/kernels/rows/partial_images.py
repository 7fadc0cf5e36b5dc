"""Row images that lack columns, made whole so that they are taken like any other.

A whole image is written to memory of the caller's: a NULL bitmap of all columns, then their values. A column that an
UPDATE's after image lacks has the value of the before image where that has it. One that neither has is NULL there, and
marked as absent in the row's flags.
"""

from __future__ import annotations

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.binlog.kernels.rows.images import written
from connectors.readers.binlog.kernels.rows.locating import locate, short
from connectors.readers.binlog.kernels.values import layout as at
from connectors.readers.binlog.kernels.values.temporal import little_word
from connectors.readers.machine.memory import (
    copy_bytes,
    fill_zero,
    load_i64,
    load_u8,
    store_i8,
    store_i64,
)

__all__ = ["partial_row"]


@kernel
def _is_marked(bitmap: int, index: int) -> bool:
    return (load_u8(bitmap + (index >> 3)) >> (index & 7)) & 1 != 0


@kernel
def _mark(bitmap: int, index: int) -> None:
    place = bitmap + (index >> 3)
    store_i8(place, load_u8(place) | (1 << (index & 7)))


@kernel
def _value_bytes(step: int, position: int, end: int) -> int:
    """How long the value at *position* is, its length prefix included; -1 where it ends behind *end*."""
    size = load_i64(step + 8 * at.STEP_SIZE)
    if end - position < size:
        return -1
    if load_i64(step + 8 * at.STEP_KIND) == at.TEXT:
        size += little_word(position, size)
        if end - position < size:
            return -1
    return size


@kernel
def _same_bytes(one: int, other: int, count: int) -> bool:
    differ = 0
    for index in range(count):
        differ |= load_u8(one + index) ^ load_u8(other + index)
    return differ == 0


@kernel
def _mark_changed(
    table: int, position: int, end: int, present: int, before: int, before_flags: int, starts: int, changed: int
) -> None:
    """Marks in *changed* the columns of an after image that the before image lacks or has with other bytes.

    Args:
        position: of the after image.
        present: the bitmap of columns that it has.
        before_flags: of the before image, which is at *before*, whole, its columns at *starts*.
    """
    columns = load_i64(table + 8 * at.COLUMNS)
    stride = (columns + 7) >> 3
    given = 0
    for column in range(columns):
        given += _is_marked(present, column)
    nulls = position
    position += (given + 7) >> 3
    step = load_i64(table + 8 * at.STEPS)
    given = 0
    for column in range(columns):
        if _is_marked(present, column):
            size = 0
            null = _is_marked(nulls, given)
            if not null:
                size = _value_bytes(step, position, end)
                if size < 0:
                    return
            if _is_marked(before_flags + at.ABSENT * stride, column) or null != _is_marked(before, column):
                _mark(changed, column)
            elif not null:
                source = load_i64(starts + 8 * column)
                if load_i64(starts + 8 * column + 8) - source != size or not _same_bytes(source, position, size):
                    _mark(changed, column)
            position += size
            given += 1
        step += 8 * at.STEP_WORDS


@kernel
def _is_unseen(table: int, column: int, changed: int, stride: int) -> bool:
    """Whether a column is generated from one that *changed*."""
    sources = load_i64(table + 8 * at.GENERATED_FROM)
    if sources:
        for index in range(stride):
            if load_u8(sources + stride * column + index) & load_u8(changed + index):
                return True
    return False


@kernel
def _whole(
    state: int,
    table: int,
    position: int,
    end: int,
    present: int,
    diffs: int,
    before: int,
    starts: int,
    row: int,
    out: int,
) -> int:
    """Writes the image at *position*, of *row*, to *out* with all columns; where that ends, IMAGE_END says.

    Args:
        present: the bitmap of columns that images of its kind have.
        diffs: the bitmap of JSON columns that come as diffs; 0: none do.
        before: the before image, whole; 0: this is no after image.
        starts: where the before image's columns start.

    Returns:
        The address behind the image, or minus a code of return.
    """
    columns = load_i64(table + 8 * at.COLUMNS)
    stride = (columns + 7) >> 3
    flags = load_i64(table + 8 * at.FLAGS) + at.FLAG_MAPS * stride * row
    limit = out + load_i64(state + 8 * at.IMAGE_BYTES)
    given = 0
    for column in range(columns):
        given += _is_marked(present, column)
    nulls = position
    position += (given + 7) >> 3
    if position > end:
        return short(state, 0)
    if limit - out < stride:
        store_i64(state + 8 * at.DETAIL, stride)
        return -at.GROW_IMAGES
    fill_zero(flags, at.FLAG_MAPS * stride)
    fill_zero(out, stride)
    unseen = flags + at.UNSEEN * stride
    if before and load_i64(table + 8 * at.GENERATED_FROM):
        # Until the image is whole the columns that it has are marked among the unseen ones where they changed.
        _mark_changed(table, nulls, end, present, before, flags - at.FLAG_MAPS * stride, starts, unseen)
    target = out + stride
    step = load_i64(table + 8 * at.STEPS)
    given = 0
    documents = 0
    for column in range(columns):
        source = 0
        size = 0
        if _is_marked(present, column):
            if _is_marked(nulls, given):
                _mark(out, column)
            else:
                source = position
                size = _value_bytes(step, position, end)
                if size < 0:
                    return short(state, column)
                position += size
                if diffs and load_i64(step + 8 * at.STEP_JSON) and _is_marked(diffs, documents):
                    _mark(flags + at.DIFF * stride, column)
            given += 1
        elif before == 0:
            _mark(out, column)
            _mark(flags + at.ABSENT * stride, column)
        elif _is_unseen(table, column, unseen, stride):
            _mark(out, column)
            _mark(flags + at.ABSENT * stride, column)
            _mark(unseen, column)
        else:
            # The flags of the before image stand in front.
            if _is_marked(flags - at.FLAG_MAPS * stride + at.ABSENT * stride, column):
                _mark(flags + at.ABSENT * stride, column)
            if _is_marked(before, column):
                _mark(out, column)
            else:
                source = load_i64(starts + 8 * column)
                size = load_i64(starts + 8 * column + 8) - source
        if size:
            if limit - target < size:
                store_i64(state + 8 * at.DETAIL, target - out + size)
                return -at.GROW_IMAGES
            copy_bytes(target, source, size)
            target += size
        documents += load_i64(step + 8 * at.STEP_JSON)
        step += 8 * at.STEP_WORDS
    for index in range(stride):
        store_i8(unseen + index, load_u8(unseen + index) & ~load_u8(present + index))
    store_i64(state + 8 * at.IMAGE_END, target)
    return position


@kernel
def _behind_options(table: int, position: int, end: int) -> int:
    """Behind the options of an after image of PARTIAL_UPDATE_ROWS, and the bits of JSON columns; 0: beyond *end*.

    Negative where there are such bits: they end there.
    """
    # The options are a number of one byte up to now; more bits of it would be something else than diffs.
    if end - position < 1 or load_u8(position) > 1:
        return 0
    if load_u8(position) == 0:
        return position + 1
    documents = 0
    step = load_i64(table + 8 * at.STEPS)
    for _ in range(load_i64(table + 8 * at.COLUMNS)):
        documents += load_i64(step + 8 * at.STEP_JSON)
        step += 8 * at.STEP_WORDS
    position += 1 + ((documents + 7) >> 3)
    return -position if position <= end else 0


@kernel
def _image(state: int, table: int, begin: int, room: int, row: int, starts: int) -> int:
    """Decodes an image that was made whole; 0, or minus a code of return."""
    behind = locate(state, table, begin, load_i64(state + 8 * at.IMAGE_END), row, starts)
    return behind if behind < 0 else written(state, table, row, 1, starts, begin + room)


@kernel
def partial_row(
    state: int,
    table: int,
    position: int,
    end: int,
    limit: int,
    row: int,
    bitmaps: int,
    images: int,
    options: int,
) -> int:
    """Decodes one row of an event whose images lack columns into *row*, an update's after image into the one behind.

    Args:
        limit: of the event's buffer.
        bitmaps: the event's, of the columns that its images have.
        images: of a row, 1 or 2.
        options: 1: after images begin with options, as in PARTIAL_UPDATE_ROWS.

    Returns:
        The address behind the row, or minus a code of return, which leaves the row as if never begun. Stores where
        columns start to SCRATCH, as ``rows.images`` does.
    """
    scratch = load_i64(state + 8 * at.SCRATCH)
    first = load_i64(state + 8 * at.IMAGES)
    room = load_i64(state + 8 * at.IMAGE_BYTES)
    position = _whole(state, table, position, end, bitmaps, 0, 0, 0, row, first)
    if position < 0:
        return position
    failed = _image(state, table, first, room, row, scratch)
    if failed < 0 or images == 1:
        return failed if failed < 0 else position
    diffs = 0
    if options:
        begun = position
        position = _behind_options(table, position, end)
        if position == 0:
            return short(state, 0)
        if position < 0:
            diffs = begun + 1
            position = -position
    present = bitmaps + ((load_i64(table + 8 * at.COLUMNS) + 7) >> 3)
    second = first + room
    position = _whole(state, table, position, end, present, diffs, first, scratch, row + 1, second)
    if position < 0:
        return position
    other = scratch + 8 * (load_i64(table + 8 * at.COLUMNS) + 1)
    failed = _image(state, table, second, room, row + 1, other)
    return failed if failed < 0 else position
