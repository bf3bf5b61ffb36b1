"""A call that is recorded once and replayed: one launch instead of thousands. The one place where capturing is done."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from yolov9kit.errors import KitError

WARM_UP = 3
"""Runs before recording: libraries choose their algorithms and take their workspaces then."""


class CaptureError(KitError):
    """What was to be recorded does something that a recording cannot hold, and what that is."""


@runtime_checkable
class Recording(Protocol):
    """A ``torch.cuda.CUDAGraph``."""

    def replay(self) -> None: ...


@dataclass(frozen=True, eq=False)
class Captured:
    """``captured(*tensors)`` copies the tensors into the recorded inputs and replays; returns the recorded outputs.

    The outputs' memory is written again by the next replay: whoever wants to keep a value copies it. Parameters are
    read where they lie, so weights that are changed in place take effect.
    """

    graph: Recording = field(repr=False)
    inputs: tuple[Tensor, ...] = field(repr=False)
    outputs: Any = field(repr=False)

    def __call__(self, *tensors: Tensor) -> Any:
        for place, tensor in zip(self.inputs, tensors, strict=True):
            place.copy_(tensor, non_blocking=True)
        self.graph.replay()
        return self.outputs


def capture(
    function: Callable[..., Any],
    examples: Sequence[Tensor],
    *,
    before_each: Callable[[], None] = lambda: None,
    after_warm_up: Callable[[], None] = lambda: None,
    pool: Any = None,
) -> Captured:
    """Record ``function(*tensors)`` for tensors of the shapes, types and device of ``examples``.

    Args:
        function: launches work on the current stream and never waits for the device.
        examples: CUDA tensors; they are copied.
        before_each: called before each run of ``function``, also before the recorded one.
        after_warm_up: puts back what the warm-up has changed. Random numbers are put back anyway.
        pool: memory shared with other recordings that never run at the same time, see ``torch.cuda.graph_pool_handle``.

    Recording watches this thread alone, so that other threads may go on using the device.

    Raises:
        CaptureError: the function waits for the device, or does something else that cannot be recorded.
        torch.OutOfMemoryError: the recording does not fit.
    """
    device = examples[0].device
    with torch.cuda.device(device):
        inputs = tuple(example.clone() for example in examples)
        random = torch.cuda.get_rng_state(device)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                before_each()
                function(*inputs)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.set_rng_state(random, device)
        after_warm_up()
        before_each()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
                outputs = function(*inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise CaptureError(f"cannot be recorded as a CUDA graph: {lines[0]}") from error
    return Captured(graph, inputs, outputs)
