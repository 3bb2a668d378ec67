"""What can go wrong with archives. The docstring is the message."""


class ArchiveError(Exception):
    """An archive could not be written, read or put back."""


class NotAnArchive(ArchiveError):
    """No archive file has this name."""
