"""Layout of a conversion of binary JSON to text: words of the state, kinds of values, codes of return."""

from __future__ import annotations

# ---- the state: one array of words, followed by the frames of open arrays and objects --------------------------------
ROW = 0  # to go on with
ROW_COUNT = 1
IN_OFFSETS = 2  # address of int32 offsets, rows + 1
IN_DATA = 3
OUT_OFFSETS = 4  # address of int32 offsets, rows + 1
OUT_DATA = 5
OUT_CAPACITY = 6
USED = 7  # bytes of output that are written
BARE = 8  # 1: as MySQL 5.7 prints: whole doubles without ".0", line ends inside base64 as they are
LEFT = 9  # bytes of the document that no value has taken yet
FRAMES = 10  # first frame
FRAME_WORDS = 6
MAX_DEPTH = 128  # the server allows 100
JSON_WORDS = FRAMES + FRAME_WORDS * MAX_DEPTH

# ---- a frame: an array or object that is being printed ---------------------------------------------------------------
BASE = 0  # address of its count
SIZE = 1  # bytes of it, all its values included
COUNT = 2
NEXT = 3  # element to print
KIND = 4

# ---- codes of return -------------------------------------------------------------------------------------------------
DONE = 0
FULL = 1  # OUT_DATA needs room
INVALID = 2  # the document in ROW is none

SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL = 0, 1, 2, 3, 4
INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE = 5, 6, 7, 8, 9, 10, 11, 12, 15
