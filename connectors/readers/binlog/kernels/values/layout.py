"""Layouts that kernels and their callers share: words of 8 bytes at an index, kinds of columns, codes of return.

All of them are constants at compile time.
"""

from __future__ import annotations

# ---- the state of a walk over events: one array of words ------------------------------------------------------------
EVENT = 0  # index of the event to go on with
AT = 1  # bytes of that event that are done; 0: not begun
TRANSACTION = 2  # OUTSIDE, ANNOUNCED or OPEN
ORDINAL = 3  # of the last event in its transaction
SOURCE = 4  # index of the transaction's source; -1: none
SEQUENCE = 5  # its number; without a source the offset of its first event
COMMIT_TIME = 6  # original commit, microseconds; 0: unknown
REBIND = 7  # offset of the first event before which table numbers must be resolved anew; its ordinal: REBIND_ORDINAL
IS_MARIADB = 8
MAX_ROWS = 9  # of a chunk
MAX_BYTES = 10  # of a chunk, see BYTES
MAX_OPEN_BYTES = 11  # of all unfinished chunks
OPEN_BYTES = 12
MAPS = 13  # address of a hash table of table numbers, see MAP_*
MAPS_MASK = 14  # its entries - 1, a power of two - 1
TABLES = 15  # address of all tables, see below
SOURCES = 16  # address of SOURCE_KEY_WORDS a source, see ``kernels.gtids``
SOURCE_COUNT = 17
SCRATCH = 18  # address of SCRATCH_WORDS words, and RUN_STEP more
SLOT = 19  # out: the table that a return is about
COLUMN = 20  # out: its column
DETAIL = 21  # out: what a return says more
REBIND_ORDINAL = 22
GTID = 23  # words of the last GTID event, see ``kernels.gtids``
IMAGES = GTID + 8  # address of memory for two images that lack columns, made whole; bytes of each: IMAGE_BYTES
IMAGE_BYTES = IMAGES + 1
IMAGE_END = IMAGES + 2  # where the last one made ends
STATE_WORDS = IMAGES + 3

SCRATCH_WORDS = (
    2 * 4097
)  # of each image in work, where its columns start and the last one ends: two of the widest table
MAX_LOCATED = 128  # images in work at a time

OUTSIDE, ANNOUNCED, OPEN = 0, 1, 2

# ---- why a walk returned --------------------------------------------------------------------------------------------
DONE = 0
NEW_MAP = 1  # a TABLE_MAP not seen, its ordinal in DETAIL: bind it
NEW_SOURCE = 2  # a transaction of a source not seen, in GTID
REBOUND = 3  # REBIND is reached by an event with the ordinal in DETAIL
FLUSH = 4  # the chunk of SLOT is full
FLUSH_ALL = 5  # all chunks together are
GROW_ROWS = 6  # SLOT needs room for more rows
GROW_DATA = 7  # COLUMN of SLOT needs room for DETAIL bytes
UNSUPPORTED = 8  # DETAIL: the event's type
PARTIAL = 9  # SLOT needs FLAGS, for images without all columns
CORRUPT = 10  # DETAIL: what is wrong, index of WRONG
GROW_IMAGES = 11  # IMAGES needs room for DETAIL bytes an image
WRONG = (
    "an event outside its buffer or shorter than its header",
    "an event that ends too early",
    "a row event before the TABLE_MAP of its table number",
    "a row event with another number of columns than its TABLE_MAP",
    "a row image that ends behind its event",
    "a row event outside a transaction",
    "a GTID inside a transaction",
    "a value that its column cannot hold",
)
EVENT_BOUNDS, EVENT_SHORT, NO_MAP, COLUMN_COUNT, IMAGE_SHORT, NO_TRANSACTION, TRANSACTION_OPEN, VALUE = range(8)

# ---- one entry of the hash table of table numbers -------------------------------------------------------------------
MAP_NUMBER = 0  # table number + 1; 0: free
MAP_BYTES = 1  # address of the TABLE_MAP's bytes behind the number and flags
MAP_LENGTH = 2
MAP_SLOT = 3  # -1: rows of that table are skipped
MAP_WORDS = 4

# ---- one table ------------------------------------------------------------------------------------------------------
COLUMNS = 0
STEPS = 1  # address of its columns, see STEP_*
ROWS = 2
CAPACITY = 3  # rows that its arrays hold
NULLS = 4  # address of the rows' null bitmaps, (COLUMNS + 7) // 8 bytes a row, and SLACK behind them
BYTES = 5  # of its rows: as in the log, and FIXED a row
FIXED = 6
OP = 7  # addresses of the changelog columns
EVENT_TIME = 8
ROW_SOURCE = 9
ROW_SEQUENCE = 10
ROW_ORDINAL = 11
KEYS = 12  # address of the key's column indexes
KEY_COUNT = 13
FLAGS = 14  # address of FLAG_MAPS bitmaps a row, each as long as one of NULLS; 0 while no image lacked a column
GENERATED_FROM = (
    15  # address of a bitmap a column: those it is computed from where images may lack it; 0: no such column
)
RUNS = 16  # address of its columns in runs, see RUN_*
RUN_TOTAL = 17
TABLE_WORDS = 18

ABSENT = 0  # the columns whose value no image of the row tells
UNSEEN = 1  # of those: what is computed from columns that changed
DIFF = 2  # JSON columns that hold diffs against the row before
FLAG_MAPS = 3

# ---- one column of a table ------------------------------------------------------------------------------------------
STEP_KIND = 0
STEP_SIZE = 1  # bytes of the value in the row; of its length prefix where it has one
STEP_META = 2
STEP_WIDTH = 3  # bytes of a value in the output; 0: offsets and data
STEP_OUT = 4  # address of the values, or of the int32 offsets
STEP_DATA = 5  # address of the data; of a DATETIME that of ``temporal.MONTHS``
STEP_CAPACITY = 6  # bytes that the data holds
STEP_JSON = 7  # 1: JSON in MySQL's binary form
STEP_WORDS = 8

SLACK = 32  # bytes behind the data that a short copy may write

# ---- one run of columns of a table: of fixed width, but for the last one --------------------------------------------
RUN_FIRST = 0  # its first column; RUN_COUNT: how many
RUN_COUNT = 1
RUN_MASK = 2  # their bits among the NULL bits of 64 columns
RUN_SIZE = 3  # bytes of all where none is NULL, of the length prefix instead of a varying value
RUN_PREFIX = 4  # bytes of the length prefix of the last one; 0: it is of fixed width
RUN_DISTANCES = 5  # address of each column's distance from where the run begins
RUN_WORDS = 6
RUN_STEP = 4  # columns located at a time: so many distances may be read behind the last

# ---- kinds of columns -----------------------------------------------------------------------------------------------
COPY_1 = 0
COPY_4 = 1
COPY_8 = 2
TEXT = 3  # length prefix and data; META: pad with zeros to that length
COPY_2 = 4
U8_TO_16 = 5
U16_TO_32 = 6
I24_TO_32 = 7
U24_TO_32 = 8
U32_TO_64 = 9
U64_TO_128 = 10
DECIMAL_18 = 11  # META: lead bytes, groups << 8, tail bytes << 16, tail digits << 24, lead digits << 32
DECIMAL_38 = 12
DATE = 13
DATETIME = 14  # META: fraction bytes
TIMESTAMP = 15
TIME = 16
YEAR = 17
WORD = 18  # SIZE little-endian bytes as one word
BIG_WORD = 19  # SIZE big-endian bytes as one word
BYTES_FIXED = 20  # SIZE bytes without prefix, into offsets and data

NO_DATE_32 = -(2**31)  # stands where a date has no Arrow value
NO_DATE_64 = -(2**63)
