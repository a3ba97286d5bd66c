"""Writes events.tfevents with TensorBoard's own writer, and checks ours.

    pip install tensorboard        # 2.21.0 wrote the file that is here
    python events.py write events.tfevents
    python events.py read FOLDER   # prints run, tag, step, value of what eigenhead exported
"""
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

EVENTS = [
    Event(wall_time=1767225600.25, file_version="brain.Event:2"),
    Event(wall_time=1767225601.5, step=200, summary=Summary(value=[
        Summary.Value(tag="energy.rank", simple_value=17.5),
        Summary.Value(tag="attention.sink", simple_value=float("nan"))])),
    Event(wall_time=1767225602.0, step=2**53 - 1, summary=Summary(value=[
        Summary.Value(tag="größe", simple_value=-1e-20)])),
]


def write(path):
    with open(path, "wb") as f:
        w = RecordWriter(f)
        for e in EVENTS:
            w.write(e.SerializeToString(deterministic=True))


def read(folder):
    m = EventMultiplexer(size_guidance={"tensors": 0, "scalars": 0})
    m.AddRunsFromDirectory(folder)
    m.Reload()
    for run, tags in sorted(m.Runs().items()):
        for tag in sorted(tags["scalars"]):
            for e in m.Scalars(run, tag):
                print(run, tag, e.step, struct.pack("<f", e.value).hex(), repr(e.wall_time))


{"write": write, "read": read}[sys.argv[1]](sys.argv[2])
