"""Words that the scanning kernel and its caller share. All of them are constants at compile time."""

from __future__ import annotations

# ---- state ---------------------------------------------------------------------------------------------------------
EVENT = 0  # index of the event to go on with
GROUP = 1  # OUTSIDE, ANNOUNCED or OPEN
ORDINAL = 2  # of the last event in its transaction
GROUP_START = 3  # offset of the transaction's first event
GROUP_END = 4  # offset behind the last whole transaction
SOURCE = 5  # index of the transaction's source; -1: it has no GTID
NUMBER = 6  # its number there
SERVER = 7  # MariaDB: the server that committed it
TIME_US = 8  # of its commit, as far as its GTID event says; else the event's own
LAST_TIME_US = 9  # of the last whole transaction
STANDALONE = 10  # MariaDB: the transaction ends with its first event that is no part of a larger one
SKIP = 11  # the transaction is passed over: NOT_SKIPPED, CONTAINED or COUNTED
GAP = 12  # transactions have been passed over since the last one that was not
GAP_START = 13  # offset behind the transaction before them
RECORDS = 14  # transactions in the record arrays
BOUND_AT = 15  # stop behind the first transaction that ends at or behind this offset
ENDING = 16  # the statement that was returned ends its transaction
IS_MARIADB = 17
COUNT_ONLY = 18  # every transaction is COUNTED
SOURCES = 19  # number of known sources
DETAIL = 20  # out: index of the event's first byte of SQL, or the table's number
LAST_KIND = 21  # type of the last event
TIME_IS_KNOWN = 22  # TIME_US comes from the GTID event
BY_GTID = 23  # the scan began at GTIDs alone, so that a transaction without one cannot be placed
FIND_ONLY = 24  # stop before the first transaction that is not passed over
GTID = 25  # words of the last GTID event, see ``kernels.gtids``
XA = GTID + 8  # an XA transaction that may be prepared: all its tables are told
HAS_ROWS = XA + 1  # the transaction has row events
STATE_WORDS = HAS_ROWS + 1

OUTSIDE, ANNOUNCED, OPEN = 0, 1, 2
NOT_SKIPPED, CONTAINED, COUNTED = 0, 1, 2

# ---- words of a source ---------------------------------------------------------------------------------------------
KEY = 0  # MySQL: the UUID's halves and four words of tag; MariaDB: the domain
INTERVALS = 6  # index of its first interval of transactions that are passed over
INTERVALS_END = 7
LAST = 8  # MariaDB: its last number
STOP_AT = 9  # stop behind the transaction of that number; -1: none
SOURCE_WORDS = 10

# ---- words of a table number in the hash table; before all entries stand as many words, the first being entries - 1
MAP_NUMBER = 0  # -1: free
MAP_AT = 1  # of its TABLE_MAP body in the byte store
MAP_SIZE = 2
MAP_WORDS = 3

# ---- why a scan returned -------------------------------------------------------------------------------------------
DONE = 0  # the window is through
BOUND = 1  # a transaction ended where one was asked for
RECORDS_FULL = 2
STATEMENT = 3  # take the event as a statement
MAPPED = 4  # a TABLE_MAP not seen
NEW_SOURCE = 5
GAP_ENDS = 6  # a transaction begins that is read, behind some that were passed over
UNSUPPORTED = 7
DESCENDING = 9  # MariaDB: a number at or below the domain's last
NESTED = 10  # a transaction begins inside another
STRAY = 11  # an event outside transactions
UNMAPPED = 12  # rows of a table number without TABLE_MAP
SHORT = 13  # an event that its own fields overrun
OTHER = 14  # PREVIOUS_GTIDS or GTID_LIST
ANONYMOUS = 15  # a transaction without GTID where BY_GTID
XA_PREPARED = 16  # the XA_PREPARE of a transaction that is not committed by it
XA_OUTCOME = 17  # XA COMMIT or XA ROLLBACK of a prepared one
XA_MAPPED = 18  # in an XA transaction, the TABLE_MAP in DETAIL comes again
SAVEPOINT = 19  # SAVEPOINT, or ROLLBACK TO one
ROLLED_BACK = 20  # a transaction with rows that ends with ROLLBACK
FOREIGN = 21  # a GTID event of the other kind of server
NUMBERLESS = 22  # a GTID whose number no transaction has
