"""Methods of avalanche-lib, with its own strategies and training loop, on the same data and network.

The model is built like its MTSimpleCNN: samples of several tasks pass through the encoder once, then through their heads.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from prer.bench.bare import PlainHead, plain_encoder
from prer.bench.clock import Turn, synchronise
from prer.bench.steps import MEMORY
from prer.learners import LEARNERS
from prer.learners.base import Learner
from prer.streams.stream import Stream
from prer.streams.task import Task

LIBRARIES: list[torch.library.Library] = []  # kept alive, since its operators are deleted with it
STRATEGIES: dict[str, tuple[str, dict[str, Any]]] = {  # the method, and settings equivalent to ours
    "naive": ("Naive", {}),
    "ewc": ("EWC", {"ewc_lambda": 50}),
    "lwf, classic": ("LwF", {"alpha": 1, "temperature": 2}),
    "replay": ("Replay", {"mem_size": 500}),
    "gem": ("GEM", {"patterns_per_exp": MEMORY, "memory_strength": 0.5}),
}


def declare_torchvision() -> None:
    """Declare two operators, so that a CUDA build of torchvision can be imported with a CPU build of torch."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        LIBRARIES.append(library)
    except ImportError:
        pass  # importing avalanche will report it


def turn_of(method: str, stream: Stream, past: int, epochs: int, device: str, fused: bool | None = None) -> Turn | None:
    """A turn of avalanche's method on the task after `past` others, always from the same state; None if it lacks the method."""
    if method not in STRATEGIES:
        return None
    ours = LEARNERS["naive"]()
    ours.start(stream.shape, (0,), device)
    clock = _clock(device)
    strategy = _strategy(method, _model(ours), clock, ours, epochs, device, fused)
    *earlier, current = _experiences(list(stream)[: past + 1])
    for experience in earlier:
        strategy.train(experience, eval_streams=[])

    def turn() -> float:
        again = copy.deepcopy(strategy)
        again.plugins = [clock if type(plugin) is type(clock) else plugin for plugin in again.plugins]
        clock.seconds.clear()
        again.train(current, eval_streams=[])
        return statistics.median(clock.seconds[1:])

    return turn


def _strategy(method: str, model: Any, clock: Any, ours: Learner, epochs: int, device: str, fused: bool | None) -> Any:
    import avalanche.training as training
    from avalanche.training.plugins import EvaluationPlugin

    kind, settings = STRATEGIES[method]
    return getattr(training, kind)(
        model=model,
        optimizer=torch.optim.Adam(model.parameters(), ours.lr, fused=fused),
        criterion=nn.CrossEntropyLoss(),
        train_mb_size=ours.batch,
        train_epochs=epochs,
        device=device,
        evaluator=EvaluationPlugin(),  # nothing is evaluated, and nothing logged
        plugins=[clock],
        **settings,
    )


def _clock(device: str) -> Any:
    """A plugin that records the seconds of a step in every epoch."""
    from avalanche.training.plugins import SupervisedPlugin

    class Clock(SupervisedPlugin):
        seconds: list[float]

        def before_training_epoch(self, strategy: Any, **more: Any) -> None:
            synchronise(device)
            self.begin, self.steps = time.perf_counter(), 0

        def after_training_iteration(self, strategy: Any, **more: Any) -> None:
            self.steps += 1

        def after_training_epoch(self, strategy: Any, **more: Any) -> None:
            synchronise(device)
            self.seconds.append((time.perf_counter() - self.begin) / self.steps)

    clock = Clock()
    clock.seconds = []
    return clock


def _model(ours: Learner) -> Any:
    from avalanche.models import MultiTaskModule

    class TaskHeads(MultiTaskModule):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleDict()

        def adaptation(self, experience: Any) -> None:
            super().adaptation(experience)
            for task in experience.task_labels:
                if str(task) not in self.heads:
                    self.heads[str(task)] = PlainHead(ours.embedding, 2, ours.dropout)

        def forward_single_task(self, z: Tensor, task_label: int) -> Tensor:
            head: Any = self.heads[str(task_label)]
            return head(z, self.training)

    class Network(MultiTaskModule):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.classifier = plain_encoder(ours), TaskHeads()

        def forward(self, x: Tensor, task_labels: Tensor) -> Tensor:
            return self.classifier(self.encoder(x), task_labels)

    return Network().to(ours.address_.device)


def _experiences(stream: Sequence[Task]) -> list[Any]:
    from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline, with_task_labels
    from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset as dataset

    train = []
    for task in stream:
        x, y = task.samples(task.train_rows([0])[0])
        train.append(dataset(x.float() / 255, y, task_labels=task.index))
    return list(with_classes_timeline(with_task_labels(benchmark_from_datasets(train=train))).train_stream)
