"""Writes what attention heads compute in PyTorch, for the eigenhead command to read.

capture writes the file format and knows nothing of models; record takes q, k and v
out of a running model; reference is the command that makes a capture of a Hugging
Face model. Only record and reference need transformers, and only when they run.
"""

from .capture import Capture, Layer

__all__ = ["Capture", "Layer"]
