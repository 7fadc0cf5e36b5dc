"""Layouts that the kernels of result sets and their callers share: words of 8 bytes at an index, kinds, codes of return."""

from __future__ import annotations

# ---- the state of a walk over packets: one array of words -----------------------------------------------------------
AT = 0  # index in the buffer of the packet to go on with
JOINED = 1  # payload of that packet where it was sent in parts that now stand behind each other; 0: it was not
JOINED_END = 2  # index behind the last of the parts
NEEDED = 3  # out: bytes that the packet takes with its header, as far as they are known
IMAGES = 4  # address of where the next row image goes
IMAGES_END = 5  # address behind the room for them, SLACK left out
IMAGE_ROWS = 6  # counts images
COLUMNS = 7
PROGRAM = 8  # address of the columns, see COLUMN_*
MOST_FIXED = 9  # bytes that an image may take besides those of its packet
COLUMN = 10  # out: the column that a return is about
STATE_WORDS = 11

SLACK = 64  # bytes behind buffers that kernels may read or write

# ---- one column -----------------------------------------------------------------------------------------------------
COLUMN_KIND = 0
COLUMN_SIZE = 1  # bytes of the value in the image; of its length prefix where it has one
COLUMN_META = 2
COLUMN_WORDS = 3

COPY_1, COPY_2, COPY_4, COPY_8 = 0, 1, 2, 3
CUT_4 = 4  # SIZE bytes of four
CUT_8 = 5  # SIZE bytes of eight, the others being zero
YEAR = 6
VARYING = 7  # length and data
BYTES = 8  # SIZE bytes behind a length
DECIMAL = 9  # text; META: digits before the point, and behind it << 8
DATE = 10
DATETIME = 11  # META: bytes of the fraction
TIMESTAMP = 12
TIME = 13

# ---- why a walk returned --------------------------------------------------------------------------------------------
MORE = 0  # the buffer ends inside of a packet
FULL = 1  # there is no room for the next image
PARTS = 2  # the next packet is sent in parts: join them
END = 3  # the result's end
ERROR = 4  # the server's error
MISFIT = 5  # a packet that is no row of such columns, or a value that COLUMN cannot have
