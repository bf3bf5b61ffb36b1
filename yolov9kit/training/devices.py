"""Several devices in one step. Each gets some of its batches; the first one, in this process, does everything else.

The step is that of one device which computes the same batches one after the other (see ``TrainStep``), BatchNorm's
running values included. The processes of the others hold no state: weights come with every step, gradients go back.
They go through memory that the processes share, on GPUs as copies from one GPU to another.
"""

import copy
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor, multiprocessing, nn

from yolov9kit.device import Device, Precision
from yolov9kit.errors import TrainingError
from yolov9kit.loss.criterion import DetectionLoss, Normaliser
from yolov9kit.model.blocks import batch_norms
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.training.share import (
    MicroBatch,
    Share,
    Statistics,
    added,
    computing,
    copy_all,
    learning,
    out_of_memory,
    to_device,
)

_LOOK_S = 1.0
_LEAVE_S = 10.0


class OtherDevices:
    """The devices of a run beside its first. Their processes are started by the first step and kept until ``close``;
    they also end when this one is gone.
    """

    def __init__(
        self,
        model: YOLOv9,
        loss: DetectionLoss,
        devices: Sequence[Device],
        precision: Precision,
        deterministic: bool = False,
        frozen_norms: Sequence[nn.Module] = (),
    ) -> None:
        self._live, self._learning, self._momenta = _state(model), learning(model), _momenta(model)
        self._state = _Flat(self._live)
        frozen = {id(norm) for norm in frozen_norms}
        names = tuple(name for name, module in model.named_modules() if id(module) in frozen)
        empty = copy.deepcopy(model).to("meta")
        threads = max(torch.get_num_threads() // (1 + len(devices)), 1)
        self._jobs = [
            _Job(empty, self._state.flat, loss, device, precision, deterministic, names, threads)
            for device in devices
        ]
        self._workers: list[_Worker] = []

    def gradients(
        self, share: Share, batches: Sequence[MicroBatch], factor: float, fixed_norms: bool = False
    ) -> Tensor:
        """Parts of the loss of all batches together, a picture, 4, with their gradients, times ``factor``, in the
        weights of ``share``, which computes the first of the batches. With ``fixed_norms`` every BatchNorm keeps its
        running values.

        Raises:
            TrainingError: one of the devices failed, or its process cannot start.
        """
        self._start()
        chunks = _dealt(batches, 1 + len(self._workers))
        busy = [(worker, chunk) for worker, chunk in zip(self._workers, chunks[1:], strict=True) if chunk]
        self._state.gather(self._live)
        _wait_for(share.device)
        for worker, chunk in busy:
            worker.send((chunk, factor, fixed_norms))
        mine = to_device(chunks[0], share.device)
        parts = [
            share.strengths(mine),
            *(_there(worker.receive(), share.device.torch_name) for worker, _ in busy),
        ]
        total = added(parts)
        for worker, _ in busy:
            worker.send(_there(total, "cpu"))
        losses = [share.gradients(mine, total, factor)]
        for worker, chunk in busy:
            losses.append(worker.receive().to(share.device.torch_name))
            self._take(worker, len(chunk), share.statistics)
        return torch.stack(losses).sum(0)

    def _start(self) -> None:
        if not self._workers:
            for job in self._jobs:  # one by one: those that have started are ended if another cannot
                self._workers.append(_Worker(job))
            for worker in self._workers:
                worker.meet()

    @torch.no_grad()
    def _take(self, worker: "_Worker", batches: int, statistics: Statistics) -> None:
        """Add a device's gradients, and go on with BatchNorm's running values as if its batches had come last."""
        gradients = worker.gradients.there(self._learning)
        pairs = [(p.grad, g) for p, g in zip(self._learning, gradients, strict=True) if p.grad is not None]
        torch._foreach_add_([mine for mine, _ in pairs], [theirs for _, theirs in pairs])
        running = iter(worker.running.there(statistics.live))
        for buffer, before, momentum in zip(statistics.live, statistics.kept, self._momenta, strict=True):
            if buffer.is_floating_point():
                buffer.copy_(next(running) + (1 - momentum) ** batches * (buffer - before))
            else:
                buffer.add_(batches * (buffer != before))  # counts batches, where it counts at all

    @property
    def pids(self) -> list[int]:
        """Of the processes that are alive."""
        return [pid for worker in self._workers if (pid := worker.pid) is not None]

    def close(self) -> None:
        for worker in self._workers:
            worker.leave()
        for worker in self._workers:
            worker.end()
        self._workers = []


@dataclass(frozen=True)
class _Job:
    """What the process of a device needs to know. ``model`` has no values, ``state`` is shared memory."""

    model: YOLOv9
    state: Tensor
    loss: DetectionLoss
    device: Device
    precision: Precision
    deterministic: bool
    frozen_norms: tuple[str, ...]
    threads: int


class _Worker:
    """The process of one device, as the first one sees it."""

    def __init__(self, job: _Job) -> None:
        processes = multiprocessing.get_context("spawn")
        self.device = job.device
        self._pipe, theirs = processes.Pipe()
        self._process = processes.Process(target=work, args=(theirs, job), daemon=True)
        self._process.start()
        theirs.close()
        self._model = job.model

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process.is_alive() else None

    def meet(self) -> None:
        gradients, running = self.receive()
        self.gradients = _Flat(learning(self._model), gradients)
        self.running = _Flat(_running(self._model), running)

    def send(self, message: Any) -> None:
        try:
            self._pipe.send(message)
        except OSError:
            raise self._gone() from None

    def receive(self) -> Any:
        try:
            while not self._pipe.poll(_LOOK_S):
                if not self._process.is_alive() and not self._pipe.poll():
                    raise self._gone()
            good, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise self._gone() from None
        if not good:
            raise TrainingError(f"device {self.device.torch_name}: {answer}")
        return answer

    def _gone(self) -> TrainingError:
        self._process.join(_LOOK_S)
        code = self._process.exitcode
        return TrainingError(f"device {self.device.torch_name}: its process has ended (exit code {code})")

    def leave(self) -> None:
        self._pipe.close()

    def end(self) -> None:
        self._process.join(_LEAVE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def work(pipe: Connection, job: _Job) -> None:
    """The process of a device: its part of every step, until the first process closes the pipe."""
    # Ctrl-C is for the first process, which then closes the pipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            _steps(pipe, job)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except torch.OutOfMemoryError as error:
            pipe.send((False, out_of_memory(error, "its part of a batch")))
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"))


def _steps(pipe: Connection, job: _Job) -> None:
    name = job.device.torch_name
    if job.device.kind == "cuda":
        torch.cuda.set_device(name)
    else:
        # the processor is shared, and threads that wait for a core slow all
        torch.set_num_threads(job.threads)
    model = job.model.to_empty(device=name)
    frozen = [model.get_submodule(norm) for norm in job.frozen_norms]
    share = Share(model, job.loss, job.device, job.precision, frozen)
    live, learned, buffers = _state(model), learning(model), _running(model)
    state, gradients, running = _Flat(live, job.state), _Flat(learned), _Flat(buffers)
    for buffer in model.buffers():
        buffer.zero_()  # also the counts, which are not sent
    pipe.send((True, (gradients.flat, running.flat)))
    while True:
        batches, factor, fixed_norms = pipe.recv()
        with computing(job.device, job.precision, job.deterministic):
            copy_all(live, state.there(live))
            share.begin(fixed_norms)
            batches = to_device(batches, job.device)
            pipe.send((True, _there(share.strengths(batches), "cpu")))
            losses = share.gradients(batches, _there(pipe.recv(), name), factor)
            gradients.gather([_or_zero(parameter) for parameter in learned])
            running.gather(buffers)
            for parameter in learned:
                parameter.grad = None
            _wait_for(job.device)
        pipe.send((True, losses.cpu()))


class _Flat:
    """Tensors of certain shapes, one after the other in one that processes share, float32."""

    def __init__(self, like: Sequence[Tensor], flat: Tensor | None = None) -> None:
        self._sizes = [tensor.numel() for tensor in like]
        self._shapes = [tensor.shape for tensor in like]
        if flat is None:
            flat = torch.zeros(sum(self._sizes), device=like[0].device).share_memory_()
        self.flat = flat
        self._views = self._split(flat)

    def gather(self, tensors: Sequence[Tensor]) -> None:
        copy_all(self._views, tensors)

    def there(self, like: Sequence[Tensor]) -> list[Tensor]:
        """The tensors on the device of ``like``, after one copy."""
        return self._split(self.flat.to(like[0].device))

    def _split(self, flat: Tensor) -> list[Tensor]:
        parts = flat.split(self._sizes)
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _state(model: nn.Module) -> list[Tensor]:
    return [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]


def _running(model: nn.Module) -> list[Tensor]:
    return [buffer for buffer in model.buffers() if buffer.is_floating_point()]


def _momenta(model: nn.Module) -> list[float]:
    """Of each buffer: the share that a new batch has in a running value."""
    norms = batch_norms(model)
    found = {id(buffer): norm.momentum or 0.0 for norm in norms for buffer in norm.buffers(recurse=False)}
    return [found[id(buffer)] for buffer in model.buffers()]


def _or_zero(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _dealt(batches: Sequence[MicroBatch], devices: int) -> list[list[MicroBatch]]:
    """In their order; the first devices get one more where it does not come out even."""
    chunks, start = [], 0
    for device in range(devices):
        end = start + len(batches) // devices + (device < len(batches) % devices)
        chunks.append(list(batches[start:end]))
        start = end
    return chunks


def _there(normaliser: Normaliser, device: str) -> Normaliser:
    aux = None if normaliser.aux is None else normaliser.aux.to(device)
    return Normaliser(normaliser.main.to(device), aux, normaliser.pictures)


def _wait_for(device: Device) -> None:
    """Another process is going to read what this one has written."""
    if device.kind == "cuda":
        torch.cuda.synchronize(device.torch_name)
