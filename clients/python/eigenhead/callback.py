"""The tap as a callback of transformers' Trainer; importing it imports transformers."""

from __future__ import annotations

import transformers

from .tap import Tap

_NAMES = {"learning_rate": "lr"}
_LEFT_OUT = {"epoch", "total_flos"}


class TapCallback(transformers.TrainerCallback):
    """Makes a Tap of the trained model when training begins; takes Tap's options.

        Trainer(..., callbacks=[eigenhead.TapCallback(probe=batch, sink="runs/a")])

    The learning rate goes at each step; loss and gradient norm at each logging step,
    as the Trainer tells them: logging_steps=1 gives every step. When training ends, the
    scalar "end" says so; where it crashes nothing does, and the silence becomes the
    alert missing-heartbeat.
    """

    def __init__(self, **options):
        self.options, self.tap = options, None

    def on_train_begin(self, args, state, control, model=None, **_):
        """Makes the tap, and probes the untrained model; a run that resumes did so before."""
        if state.is_world_process_zero:
            self.tap = Tap(model, **self.options)
            if state.global_step == 0:
                self.tap.step(0)

    def on_step_end(self, args, state, control, lr_scheduler=None, **_):
        """Tells the learning rate, and probes if it is time."""
        if self.tap:
            self.tap.step(state.global_step, lr=_rate(lr_scheduler))

    def on_log(self, args, state, control, logs=None, **_):
        """Tells what the Trainer logs, the evaluation's numbers too."""
        if self.tap:
            numbers = {_NAMES.get(k, k): v for k, v in (logs or {}).items() if isinstance(v, (int, float)) and k not in _LEFT_OUT and not k.startswith("train_")}
            self.tap.scalars(state.global_step, **numbers)

    def on_train_end(self, args, state, control, **_):
        """Delivers the rest, and says that the run is over."""
        if self.tap:
            self.tap.close()


def _rate(scheduler) -> float | None:
    """The learning rate; None where a scheduler has none yet, as DeepSpeed's before its
    first step in float16, and ReduceLROnPlateau of older PyTorch: both raise."""
    try:
        return scheduler.get_last_lr()[0]
    except Exception:
        return None
