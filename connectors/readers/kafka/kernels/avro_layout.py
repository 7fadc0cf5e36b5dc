"""Layouts of the walk over messages of Avro: what values are found as beside those of ``layout``, instructions, and the state of a pass."""

from __future__ import annotations

# ---- kinds of a value that was found, beside NULL, FALSE, TRUE, TEXT and NESTED of ``layout`` --------------------------
BODY = 9  # bytes as they are
VARINT = 10  # an integer as Avro writes it
FLOAT = 11  # 4 bytes
DOUBLE = 12  # 8 bytes

# ---- instructions: one after the other, CODE_WORDS words each --------------------------------------------------------
CODE = 0
SLOT = 1  # the column that the value goes to; META and more: a word of what is known of the message; -1: nowhere
ARGUMENT = 2
JUMP = 3  # the instruction behind a union
CODE_WORDS = 4

END = 0
UNION = 1  # of null and one type; ARGUMENT: the byte of null's branch
LONG = 2
FIXED = 3  # ARGUMENT: how many bytes; SLOT gets a value of kind FIXED_KIND
BOOLEAN = 4
STRING = 5
BYTES = 6
ITEMS = 7  # an array of items of ARGUMENT bytes
NEST = 8  # a value of several parts begins
NESTED = 9  # and ends
ROW = 10  # a row begins; ARGUMENT: BEFORE or AFTER

FIXED_KIND_BITS = 8  # of ARGUMENT of FIXED: the lowest bits are the kind

# ---- what is known of a message: META_WORDS words -------------------------------------------------------------------
META = 1 << 20
BEFORE = 0  # one more than the row's image; 0: none
AFTER = 1
OPERATION = 2  # a value
DATABASE_NAME = 3
TABLE_NAME = 4
TIME_US = 5  # a value; the number stands in the word behind it
TIME_MS = 7
SOURCE = 9  # a value where it is NULL
GTID = 10
FILE = 11
OFFSET = 12
EVENT_ROW = 13
SNAPSHOT = 14
META_WORDS = 15

# ---- the state of a pass ---------------------------------------------------------------------------------------------
BUFFER = 0  # address of all messages behind each other, with SLACK
STARTS = 1  # address of where each begins in it, and the end of the last one
TODO = 2  # address of the numbers of messages to look at
TODO_COUNT = 3
STATUS = 4  # address of a byte a message
TIMES = 5  # address of a word a message: its time in the source, UTC microseconds
HEADER_BYTES = 6  # of each message, which are passed over
INSTRUCTIONS = 7  # address of the first one
FACTS = 8  # address of META_WORDS words
COLUMNS = 9
IMAGES = 10  # address of row images, COLUMNS words each, two for each of TODO
IMAGES_USED = 11  # in, out
DATABASE = 12  # address of the name in UTF-8
DATABASE_BYTES = 13
TABLE = 14
TABLE_BYTES = 15
ROW_IMAGE = 16  # address of a word a row: its image
ROW_MESSAGE = 17
ROW_OP = 18  # address of a byte a row
ROWS_USED = 19  # in, out
LONE_UPDATES = 20  # whether an update without the row before it is its row alone
ROW_PLACE = 21  # address of PLACE_WORDS words a row: values of the operation, the GTID, the file, the offset and the row in the event
MARK = 22  # address of the text of SNAPSHOT whose messages are left to the library
MARK_BYTES = 23
STATE_WORDS = 24

PLACE_WORDS = 5
