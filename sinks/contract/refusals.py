"""Why an object store refuses, by the code that it says, and what mends it."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["is_bare", "next_step_for"]

_BARE = re.compile(r"Status Code: (?:301|400|403)\b")
_REGION = "set fs.s3a.endpoint.region to the bucket's region"
_KEYS = "correct the credentials: fs.s3a.access.key and fs.s3a.secret.key, or what AWS's own tools read"
_RIGHTS = "allow GetObject, PutObject, DeleteObject, AbortMultipartUpload and ListBucket there"
_BUCKET = "make the bucket, or correct the sink's path"
_NEXT: Mapping[str, str] = {
    "ExpiredToken": "renew the credentials; a role's and those of AWS's own files are read again while the run goes on",
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraint": _REGION,
    "InvalidAccessKeyId": _KEYS,
    "INVALID_ACCESS_KEY_ID": _KEYS,
    "SignatureDoesNotMatch": _KEYS,
    "SIGNATURE_DOES_NOT_MATCH": _KEYS,
    "InvalidToken": _KEYS,
    "AccessDenied": _RIGHTS,
    "ACCESS_DENIED": _RIGHTS,
    "NoSuchBucket": _BUCKET,
    "NO_SUCH_BUCKET": _BUCKET,
    "RequestTimeTooSkewed": "set this machine's clock",
}
_CODES = re.compile(r"\b(?:" + "|".join(_NEXT) + r")\b")


def is_bare(found: str) -> bool:
    """Whether an error tells a status of a refusal alone: the answer to HEAD has no body, so 400 and 403 may be anything."""
    return _BARE.search(found) is not None and _CODES.search(found) is None


def next_step_for(found: str) -> str:
    """What mends the error *found*: what its code asks for; without a code, the path.

    >>> next_step_for("AWS Error NO_SUCH_BUCKET during PutObject operation")
    "make the bucket, or correct the sink's path; the next run goes on where this one ended"
    """
    code = _CODES.search(found)
    what = "mend the path, its rights or its space" if code is None else _NEXT[code[0]]
    return f"{what}; the next run goes on where this one ended"
