"""The way out of resolving a statement."""

__all__ = ["Refused"]


class Refused(Exception):
    """A statement does not fit the catalog, or does what is not followed; the message is a clause for people."""
