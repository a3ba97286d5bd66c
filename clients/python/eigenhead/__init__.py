"""The training tap, and what attention heads compute as files for the eigenhead command.

tap is the front door: Tap in a training loop, TapCallback in transformers' Trainer.
Behind it probe runs sequences aside of training (guard leaves everything as it was,
watch looks at attention, subsample cuts), and writer takes what comes to folder or
server. capture writes the file format and knows nothing of models; reference is the
command that makes a capture of a Hugging Face model (record, attention). Only callback,
record and reference need transformers, and only when they run.
"""

from .capture import Capture, Layer
from .folder import Folder
from .server import Server
from .tap import Tap

__all__ = ["Capture", "Folder", "Layer", "Server", "Tap", "TapCallback"]


def __getattr__(name: str):
    if name == "TapCallback":  # imports transformers, which the tap does not need
        from .callback import TapCallback

        return TapCallback
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
