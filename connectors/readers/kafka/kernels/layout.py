"""Layouts that kernels and their callers share: words of 8 bytes at an index, kinds, codes.

A value that was found is one word: where it starts in the buffer, its length, and its kind. Of a text these are of what stands between its quotes.
"""

from __future__ import annotations

# ---- a value that was found -----------------------------------------------------------------------------------------
START_BITS = 32
LENGTH_BITS = 28
KIND_AT = START_BITS + LENGTH_BITS
START_MASK = (1 << START_BITS) - 1
LENGTH_MASK = (1 << LENGTH_BITS) - 1

MISSING = 0  # there is none of that name
NULL = 1
FALSE = 2
TRUE = 3
INTEGER = 4
NUMBER = 5  # with a fraction or an exponent
TEXT = 6  # valid UTF-8 without escapes
ESCAPED = 7  # a text with escapes, all of them valid and none of half a character
NESTED = 8  # an object or an array, valid JSON

SLACK = 64  # bytes behind the buffer, all of them quotes, which end any text

# ---- a node: an object whose members are looked for -----------------------------------------------------------------
NODE_MEMBERS = 0  # how many
NODE_FIRST = 1  # address of the first member
NODE_IS_ROW = 2  # 1, or 2 where a row may lack columns whatever IN_ORDER says
NODE_WORDS = 3

MEMBER_NAME = 0  # address of the name with its quotes and the colon
MEMBER_NAME_BYTES = 1
MEMBER_ACTION = 2
MEMBER_SLOT = 3
MEMBER_NODE = 4  # of an object that is entered
MEMBER_TEXT = 5  # address of what REMEMBER compares with
MEMBER_TEXT_BYTES = 6
MEMBER_WORDS = 7

PASS_OVER = 0
VALUE = 1  # the value goes to SLOT of the frame
ENTER = 2  # an object of more members; SLOT tells its kind
ROWS = 3  # one row or an array of them; SLOT and the two behind it: the kind, the first image, how many
REMEMBER = 4  # a value that is mostly the same as TEXT, which is valid JSON; SLOT as of VALUE

OBJECT = 1 << 62  # in the SLOT of ENTER and ROWS: it is there as an object
ARRAY = OBJECT | 1

# ---- the state of a pass over messages: one array of words ----------------------------------------------------------
BUFFER = 0  # address of all messages behind each other, with SLACK
STARTS = 1  # address of where each begins in it, and the end of the last one
TODO = 2  # address of the numbers of messages to look at
TODO_COUNT = 3
DONE = 4  # in, out: how many of TODO were looked at
STATUS = 5  # address of a byte a message
META = 6  # address of META_COUNT words a message
META_COUNT = 7
TIMES = 8  # address of a word a message: its time in the source, UTC microseconds
IMAGES = 9  # address of row images, COLUMNS words each
IMAGES_USED = 10  # in, out
IMAGES_ROOM = 11
COLUMNS = 12
ROOT = 13  # address of the outermost node
PREFIX = 14  # address of what each message begins with
PREFIX_BYTES = 15
SUFFIX = 16  # the byte behind the outermost object; 0: none
DATABASE = 17  # address of the name in UTF-8, as it stands in messages
DATABASE_BYTES = 18
TABLE = 19
TABLE_BYTES = 20
NAMES_MAY_LACK = 21  # an empty name may be NULL or missing
DATABASE_SLOT = 22
TABLE_SLOT = 23
OP_SLOT = 24
OPS = 25  # address of OPS_COUNT pairs: the name in 8 bytes, and the code
OPS_COUNT = 26
TIME_SLOT = 27
TIME_UNIT_US = 28
COARSE_TIME_SLOT = 29  # looked at where the other has no value; -1: none
COARSE_TIME_UNIT_US = 30
TIME_LOW_US = 31
TIME_HIGH_US = 32
AFTER_SLOT = 33
BEFORE_SLOT = 34
DELETED_SLOT = 35  # of the two, that which has the row of a delete
IS_OVERLAY = 36  # what BEFORE lacks is as in AFTER
WITH_ARRAYS = 37  # rows may come in arrays
FALSE_SLOT = 38  # a field that is not true in messages of rows; -1: none
OBJECT_SLOT = 39  # a field that is an object, NULL or missing; -1: none
SECOND_FALSE_SLOT = 40  # another one
IN_ORDER = 41  # rows must have all columns, and in their order
ROW_IMAGE = 42  # address of a word a row: its image
ROW_MESSAGE = 43  # address of a word a row: its message
ROW_OP = 44  # address of a byte a row
ROW_ORDINAL = 45  # address of a word a row: the number of its change in the message
ROWS_USED = 46  # in, out; there is always as much room for rows as for images
STACK = 47  # address of STACK_WORDS words for the walk
IS_STRANGE = 48  # of the walk: a row has a member that is none of its columns, or where IN_ORDER asks for another order
TOLD_SLOT = 49  # where IN_ORDER asks for it, a field that has the text which is remembered; -1: none
SECOND_TOLD_SLOT = 50  # another one
SOURCE_SLOT = 51  # the object that has the names; -1: the message itself
STATE_WORDS = 52

# ---- an object that the walk is in ----------------------------------------------------------------------------------
LEVEL_NODE = 0
LEVEL_FRAME = 1  # address of where its values go
LEVEL_EXPECTED = 2  # the member that is looked for first
LEVEL_BEHIND = 3  # address behind the last member
LEVEL_COUNT = 4  # address of how many rows there are in its array; 0: it is in none
LEVEL_WORDS = 5
LEVELS = 8
STACK_WORDS = LEVEL_WORDS * LEVELS

# ---- what is known of a message -------------------------------------------------------------------------------------
OPEN = 0  # not looked at, or of a table that was not looked for
LOCATED = 1
STRANGE = 2  # a row has a member that is none of the columns
SLOW = 3  # it is not understood here

CREATED = 0
UPDATED = 1
DELETED = 2
WRITTEN = 3  # an update; without the row before it, its row alone

# ---- what a kernel says of a value ----------------------------------------------------------------------------------
NO_VALUE = 0
HAS_VALUE = 1
MISFIT = 2  # it is not understood here
LONG_NUMBER = 3  # a double whose nearest binary number is not that easily told
