"""Our error behind a failed Spark job: Spark hands on only the text of what another process raised."""

from __future__ import annotations

import re

from historian.errors import HistorianError, SinkError, SinkUnreachable, error_in

__all__ = ["error_behind"]

_MAY_PASS = re.compile(
    r"UnknownHostException|ConnectException|NoRouteToHostException|SocketTimeoutException|SocketException|ConnectTimeoutException"
    r"|NoHttpResponseException|Unable to execute HTTP request|Connection (?:refused|reset)|AWS Error NETWORK_CONNECTION"
    r"|SLOW_DOWN|SlowDown|SERVICE_UNAVAILABLE|Service Unavailable|Status Code: 50[0234]|HTTP response code 50[0234]"
    r"|HTTP status 50[0234]|NoSuchUpload|NO_SUCH_UPLOAD|RemoteFileChangedException"
    r"|INTERNAL_FAILURE|REQUEST_TIMEOUT|RequestTimeout|ThrottlingException"
    r"|Premature end of Content-Length|ConnectionClosedException|ExpiredToken|EXPIRED_TOKEN"
)
"""As the AWS SDK, Hadoop's S3A and Arrow's file system name what object storage and the way to it do for a while.

Credentials that have expired are renewed by whoever gives them. An upload is gone where its end was told and the answer lost:
then the file is written anew, under another name. An object that changes while it is read is
read again.
"""


def error_behind(failure: BaseException) -> HistorianError:
    r"""The last error of ours in the failure's text, of its own class; else a :class:`SinkError` around the text.

    It is a :class:`SinkUnreachable` where the text says that storage is out of reach. An error of ours stays as it is else.

    >>> error_behind(ValueError("x\nhistorian.errors.LogPurged: the log is gone (binlog.000001)"))
    LogPurged('the log is gone (binlog.000001)')
    """
    text = str(failure)
    if isinstance(failure, SinkError) and not failure.retryable and _MAY_PASS.search(text):
        return SinkUnreachable(
            failure.what,
            where=failure.where,
            expected=failure.expected,
            found=failure.found,
            next_step=failure.next_step,
        )
    if isinstance(failure, HistorianError):
        return failure
    found = error_in(text)
    if found is not None:
        return found
    kind = SinkUnreachable if _MAY_PASS.search(text) else SinkError
    return kind("a plan could not be written", found=text.strip())
