"""The errors a user may meet: each message names the file, line or tensor, the value, and what to do.

``KitError`` and its children carry a finished sentence. The command line prints that sentence and nothing
else; everything that is not a ``KitError`` is a fault of ours and keeps its traceback.
"""


class KitError(Exception):
    """Something that a person can understand and mend. Exit code 1 on the command line."""


class UsageError(KitError):
    """A request that contradicts itself or names something unknown. Exit code 2 on the command line."""


class PictureError(KitError):
    """A picture, video or camera that cannot be opened or decoded.

    ``code`` tells the kinds apart without reading the sentence: ``picture_empty``, ``picture_truncated``,
    ``picture_not_a_picture``, ``picture_too_large``, ``picture_unsupported``, else ``picture_unreadable``.
    """

    def __init__(self, message: str, code: str = "picture_unreadable") -> None:
        super().__init__(message)
        self.code = code


class CheckpointError(KitError):
    """A weights file that cannot be read, is not trusted, or does not fit."""


class DataError(KitError):
    """A data set that cannot be used as it is: its yaml, its folders, its label files."""


class TrainingError(KitError):
    """A run that cannot start, go on or be resumed."""


class EvaluationError(KitError):
    """Weights or detections that cannot be scored."""


class DeviceError(KitError):
    """A device or a precision that this machine does not have."""


class DownloadError(KitError):
    """A download that was asked for and could not be finished."""
