"""The checks of a learner."""

# S seeds, n samples, M tasks

from __future__ import annotations

import functools
import random
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prer.learners import Learner, Naive
from prer.learners.closed_form import ClosedForm
from prer.learners.interfaces import Recognises
from prer.models.folder import load, save
from prer.models.model import Model, digest_of
from prer.runs.autosave import Autosave
from prer.runs.checkpoint import Checkpoint, Pace
from prer.runs.experiment import Experiment
from prer.runs.learn import learn
from prer.runs.result import Result
from prer.settings import Options, families, merged, named, values_of
from prer.streams.making import lesson_of
from prer.streams.pool import as_pool
from prer.streams.stream import Stream, arriving
from prer.streams.task import Scenario
from prer.testing.streams import domains, images, vectors
from prer.testing.tensors import differing_names, memory_tensors, reachable_tensors, rows_of, saved_tensors

QUICK: dict[str, Any] = {"embedding": 16, "batch": 16, "channels": (12, 12, 12), "hidden": (16,)}
EPOCHS = 2  # of every phase, except where a check needs a learner that has learned its tasks
LONG: dict[str, dict[str, Any]] = {  # enough to learn the made-up data almost without an error
    "vectors": {"embedding": 40, "lr": 5e-3, "dropout": 0.0, "epochs": 20},
    "images": {"embedding": 32, "channels": (12, 24, 48), "lr": 5e-3, "dropout": 0.0, "epochs": 60},
}
# Checks with the task given only: the others would repeat them, or a network that is not trained to keep a balance
# between old and new classes answers as well as it can without having learned everything.
TASK_GIVEN = ("settings_survive_toml", "learns_images", "learns_vectors", "ignores_global_generators", "shares_a_head")
LEARNED = 80  # per cent; guessing reaches 50, and a small network whose units die does so on one of four tasks
SEEDS = (0, 1)
# Advice that ends several messages.
RANDOMNESS = "draw random numbers from an address only, such as (address / 'noise').uniform(n)"
STATE = "what a learner needs later must be in a module that `memory` returns, or in `notes_`, not in plain attributes"
DECLARE = "keep nothing of the data, or keep samples in `self.kept_`, which counts them"


class Suite:
    """The checks of one learner; the first line of a check's docstring is the promise."""

    def __init__(self, cls: type[Learner], settings: Mapping[str, Any], scenario: Scenario = "task") -> None:
        self._cls, self._settings, self._scenario = cls, dict(settings), scenario

    # -- what the checks share -----------------------------------------------------------------------------------

    def _make(self, **more: Any) -> Learner:
        if issubclass(self._cls, ClosedForm):  # it refuses settings of networks and training
            return self._cls(**self._settings)
        epochs, short = more.get("epochs", EPOCHS), dict[str, Any]()
        for f in fields(self._cls):
            if f.name.startswith("epochs"):
                short[f.name] = epochs
            elif isinstance(f.default, Options) and "epochs" in values_of(f.default):
                short[f.name] = {"epochs": epochs}
        options = families(self._cls)
        return self._cls(**merged(QUICK | short | more, named(self._settings, options), options))

    def _learned(self, stream: Any, seeds: Sequence[int] = SEEDS, **more: Any) -> tuple[Result, Learner]:
        learner = self._make(**more)
        return learn(stream, learner, seeds=seeds, device="cpu", warned=True), learner

    @functools.cached_property
    def _usual(self) -> tuple[Result, Learner, list[dict[str, Any]]]:
        events, learner = [], self._make()
        result = learn(self._vectors, learner, seeds=SEEDS, device="cpu", observe=events.append, warned=True)
        return result, learner, events

    @functools.cached_property
    def _vectors(self) -> Stream:
        return vectors(scenario=self._scenario)

    @functools.cached_property
    def _images(self) -> Stream:
        return images(scenario=self._scenario)

    # -- the checks ----------------------------------------------------------------------------------------------

    def settings_survive_toml(self) -> None:
        """An experiment with the learner can be written as TOML and read again."""
        name = {"learner": {"name": self._cls.name}}
        plain = Experiment.parse(name, presets=False)
        _require(plain.learner == self._cls(), "without settings it is not the learner with its defaults")
        for learner in (self._cls(), self._make()):
            experiment = replace(plain, learner=learner)
            again = Experiment.parse_run(tomllib.loads(experiment.to_toml()))
            _require(again.learner == learner, f"{learner} became {again.learner}")
            _require(again.hash == experiment.hash, "the same settings have another hash")

    def learns_vectors(self) -> None:
        """A task of vectors that is easy to tell apart is learned."""
        self._learns("vectors", vectors())

    def learns_images(self) -> None:
        """A task of images that is easy to tell apart is learned."""
        self._learns("images", images(per_class=48))

    def _learns(self, kind: str, stream: Stream) -> None:
        diagonal = self._learned(stream, **LONG[kind])[0].matrix.diagonal(0, 1, 2)
        reached = f"right after learning a task its accuracy is {diagonal.mean():.0f} % on average"
        _require(diagonal.mean() > LEARNED, f"{reached}; guessing reaches 50 %, and {LEARNED} % are expected")

    def is_deterministic(self) -> None:
        """Two runs with the same seeds end in the same state, and other seeds in another one."""
        stream, digests = self._images, []
        for seeds in ([0, 1], [0, 1], [0, 2]):
            _seed_global_generators(5)
            digests.append(self._learned(stream, seeds)[0].digest)
        _require(digests[0] == digests[1], f"the second run ended in another state; {RANDOMNESS}")
        _require(digests[0] != digests[2], f"seeds 1 and 2 ended in the same state; {RANDOMNESS}")

    def ignores_global_generators(self) -> None:
        """A run neither uses nor changes the global random generators of Python, NumPy and torch."""
        stream, digests = self._images, []
        for seed in (5, 6):
            _seed_global_generators(seed)
            before = _global_generators()
            digests.append(self._learned(stream)[0].digest)
            _require(_global_generators() == before, f"the state of a global generator has changed; {RANDOMNESS}")
        _require(digests[0] == digests[1], f"the result depends on the seed of a global generator; {RANDOMNESS}")

    def seeds_do_not_affect_each_other(self) -> None:
        """What a seed learns does not depend on the other seeds of the run, except for rounding errors."""
        stream = self._images
        if self._make().phases(*stream[0].size):
            self._losses_are_those_of_a_seed_alone(stream)
        a, b = (saved_tensors(self._learned(stream, seeds)[1], stream) for seeds in ([0, 1], [0, 2]))
        differing = [name for name in a if not torch.allclose(a[name][0], b[name][0], rtol=1e-3, atol=1e-3)][:3]
        how = "return the loss of each seed from `loss`, and compute nothing across the first axis of tensors"
        _require(not differing, f"with another second seed, {', '.join(differing)} of the first differs; {how}")

    def _losses_are_those_of_a_seed_alone(self, stream: Stream) -> None:
        first: list[float] = []
        for seeds in ([0], [0, 1]):
            events: list[dict[str, Any]] = []
            learn(stream, self._make(), seeds=seeds, device="cpu", observe=events.append, warned=True)
            first.append(next(event["loss"][0] for event in events if event["event"] == "epoch"))
        how = "the loss of a seed must not depend on the number of seeds"
        _require(
            bool(np.isclose(*first, rtol=1e-2)),
            f"alone, seed 0 begins with a loss of {first[0]:.4g}, and beside another one with {first[1]:.4g}; {how}",
        )

    def resumes_after_any_epoch(self) -> None:
        """A run that is stopped after each epoch and resumed ends in the same state as one that never stops."""
        for stream in (vectors(classes=4, scenario=self._scenario), domains(scenario=self._scenario)):
            events: list[dict[str, Any]] = []
            whole = self._make()
            result = learn(stream, whole, seeds=SEEDS, device="cpu", observe=events.append, warned=True)
            stops = sum(event["event"] == "epoch" for event in events) or len(stream)  # a closed form has no epochs
            with TemporaryDirectory() as folder:
                found, learner = self._stopped_and_resumed(stream, Path(folder) / "checkpoint", stops)
            differing = differing_names(saved_tensors(whole, stream), saved_tensors(learner, stream))
            where = f"{', '.join(differing) or 'the accuracy'} differs; {STATE}"
            _require(found.digest == result.digest, where)
            sizes = [(r.memory_floats, r.memory_samples, r.transient_floats) for r in (found, result)]
            _require(sizes[0] == sizes[1], f"the size of its memory was {sizes[1]} and is {sizes[0]}; {STATE}")

    def _stopped_and_resumed(self, stream: Stream, path: Path, stops: int) -> tuple[Result, Learner]:
        """The result of a run that is stopped after every epoch; each time a new learner goes on."""
        for _ in range(stops + 1):
            autosave, learner = Autosave(_StoppingCheckpoint(path), {}), self._make()
            autosave.pace = _EveryEpoch()
            try:
                return learn(stream, learner, seeds=SEEDS, device="cpu", autosave=autosave, warned=True), learner
            except _Stopped:
                pass
        how = "it trains epochs again that a checkpoint has; train with `self.train`, which goes on where it was"
        raise AssertionError(how)

    def predicts_the_same_when_loaded(self) -> None:
        """A saved learner that is loaded predicts the same, one sample at a time as well."""
        stream, (result, learner, _) = self._vectors, self._usual
        with TemporaryDirectory() as folder:
            save(Path(folder), Model.learned(learner, list(stream)))
            model = load(Path(folder))
        for which in (learner, model.learner):
            for name, value in vars(which).items():
                network = isinstance(value, nn.Module) and any(True for _ in value.parameters())
                training = network and any(module.training for module in value.modules())
                _require(not training, f"`{name}` is in training mode after training; call its method eval")
        for task in stream:
            rows = task.test_rows(SEEDS)
            x, y = task.samples(rows)
            matrices = {None: result.matrix, task.outputs: result.matrix_task_given}
            for among, matrix in matrices.items():
                if matrix is not None:
                    right = learner.predict(x, task.head, among) == torch.tensor(task.outputs)[y]
                    measured = np.allclose(100 * right.double().mean(1).numpy(), matrix[:, -1, task.index])
                    _require(measured, "the accuracy is not that of `predict`")
            asks: list[tuple[str, Callable[[Any, Tensor], Tensor]]]
            asks = [("predict", lambda of, x, head=task.head: of.predict(x, head))]
            if isinstance(learner, Recognises):
                asks.append(("recognise", lambda of, x: of.recognise(x).argmax(-1)))
            for name, ask in asks:
                with torch.no_grad():
                    here, there = ask(learner, x), ask(model.learner, x)
                    alone = torch.cat([ask(model.learner, row) for row in x.split(1, dim=1)], dim=1)
                _require(torch.equal(here, there), f"`{name}` gives other answers on task {task.index + 1}; {STATE}")
                _require(torch.equal(there, alone), f"`{name}` gives other answers for a sample without the others")

    def continues_when_loaded(self) -> None:
        """A model that is saved and loaded after each task ends in the state of one that never stops."""
        rng, version = np.random.default_rng(0), None
        tasks = [(rng.normal(size=(40, 4)), np.repeat(labels, 20)) for labels in (["a", "b"], ["c", "d"], ["a", "d"])]
        whole, stopped = (Model(self._make(), SEEDS, "cpu", self._scenario) for _ in range(2))
        with TemporaryDirectory() as folder:
            for x, y in tasks:
                for model in (whole, stopped):
                    model.learn(lesson_of(as_pool(x, y, None, None), model.tasks, self._scenario))
                version = save(Path(folder), stopped, version)
                stopped = load(Path(folder))
        differing = differing_names(whole.learner.state(), stopped.learner.state())
        same = digest_of(whole.learner) == digest_of(stopped.learner)
        _require(same, f"{', '.join(differing)} differs; {STATE}")

    def counts_its_memory(self) -> None:
        """`memory_floats` counts every number that is saved and that naive would not save."""
        result, learner, _ = self._usual
        counts = (result.memory_floats, result.memory_samples, result.transient_floats)
        whole = all(len(of) == 3 and all(type(n) is int and n >= 0 for n in of) for of in counts)
        _require(whole, f"each count must be a whole number after each task, and they are {counts}")
        saved = memory_tensors(learner, self._vectors)
        count, declared = sum(t[0].numel() for t in saved.values()), result.memory_floats[-1]
        by_reference = result.memory_samples[-1] > 0 and not saved  # as for joint, whose memory is the stream
        _require(count == declared or by_reference, f"{count} numbers are saved for each seed, and {declared} counted")

    def keeps_no_undeclared_samples(self) -> None:
        """Nothing that a learner holds refers to the data, or is a copy of more samples than it declares."""
        stream = self._vectors
        result, learner = self._learned(stream, seeds=[0])
        declared, tasks = result.memory_samples[-1], list(stream)
        by_reference = declared > 0 and not memory_tensors(learner, stream)  # as for joint, whose memory is the stream
        storages = {t.untyped_storage().data_ptr() for task in tasks for t in (task.x, task.y)}
        raw = torch.cat([task.x for task in tasks])
        samples = rows_of(raw) | rows_of(learner.inputs_(raw.unsqueeze(0)))
        for name, value in vars(learner).items():
            held = [t for t in reachable_tensors(value) if t.numel()]
            refers = any(t.untyped_storage().data_ptr() in storages for t in held)
            _require(not refers or by_reference, f"`{name}` refers to the data of a task; {DECLARE}")
            if not refers:
                copies = samples & set().union(*(rows_of(t) for t in held if t.shape[-1:] == raw.shape[-1:]))
                count = f"`{name}` has copies of {len(copies)} samples, and {declared} are declared"
                _require(len(copies) <= declared, f"{count}; {DECLARE}")

    def reports_every_epoch(self) -> None:
        """Every epoch of every phase is reported once, in order, with the loss of each seed."""
        result, learner, events = self._usual
        epochs = [event for event in events if event["event"] == "epoch"]
        phases = [(task.index, learner.phases(*task.size)) for task in self._vectors]
        expected = [(t, phase, epoch) for t, of_task in phases for phase, n in of_task.items() for epoch in range(n)]
        reported = [(event["task"], event["phase"], event["epoch"]) for event in epochs]
        first = next((a or b for a, b in zip(expected, reported, strict=False) if a != b), None)
        how = f"`phases` promises {len(expected)} epochs, and {len(reported)} were reported; first difference: {first}"
        _require(reported == expected, f"{how}; train with `self.train`, in the order of `phases`")
        _require(all(len(event["loss"]) == len(SEEDS) for event in epochs), "an epoch has not one loss for each seed")
        timed = {*phases[0][1], "evaluation", "total"}
        _require(set(result.seconds) == timed, f"times are known of {sorted(result.seconds)}, not of {sorted(timed)}")

    def takes_tasks_of_any_size(self) -> None:
        """Tasks may differ in the number of samples and of classes."""
        rng, counts = np.random.default_rng(0), [30, 12, 7, 25, 40, 9, 3]
        x, y = rng.normal(size=(sum(counts), 4)), np.repeat(np.arange(7), counts)
        tasks = [[6, 5], [0, 1, 2], [4, 3]] if self._scenario == "task" else [[6], [0, 1, 2], [4, 3], [5]]
        result, _ = self._learned(Stream.split(x, y, tasks=tasks, scenario=self._scenario))
        _require(np.isfinite(result.matrix[:, -1]).all(), "a task was not tested")

    def shares_a_head(self) -> None:
        """Tasks with the same classes share one head, and are tested before they are learned."""
        result, _ = self._learned(domains())
        _require(np.isfinite(result.matrix[:, np.tri(3, k=1, dtype=bool)]).all(), "a task was not tested")
        tested = np.isfinite(result.untrained).tolist()
        _require(tested == [[False, True, True]] * len(SEEDS), "a later task was not tested before it was learned")

    def takes_tasks_as_they_arrive(self) -> None:
        """A learner does not look ahead: tasks that arrive one by one give the result of a known stream."""

        def tasks() -> Iterator[tuple[np.ndarray, list[str]]]:
            rng = np.random.default_rng(0)
            for labels in (["a", "b"], ["c", "d", "e"], ["b"], ["e", "f"]):
                yield rng.normal(size=(20 * len(labels), 4)), labels * 20

        result, _ = self._learned(arriving(tasks(), scenario=self._scenario))
        known, _ = self._learned(Stream.of(tasks(), scenario=self._scenario))
        _require(result.digest == known.digest, "the results differ")
        tested = np.tri(4, dtype=bool)
        tested[1, 2] = self._scenario == "task"  # the head of the third task exists before it
        _require(np.array_equal(np.isfinite(result.matrix[0]), tested), "not every task was tested")

    def differs_from_naive(self) -> None:
        """A learner does something about forgetting; otherwise a warning is given."""
        _, learner, _ = self._usual
        naive = Naive(**{f.name: getattr(learner, f.name) for f in fields(Naive) if f.name != "encoder"})
        learn(self._vectors, naive, seeds=SEEDS, device="cpu", warned=True)
        ours, theirs = (saved_tensors(of, self._vectors) for of in (learner, naive))
        if self._cls is not Naive and not differing_names(theirs, ours):
            how = "after three tasks its networks equal those of naive bit for bit, so its method has no effect"
            warnings.warn(f"{self._cls.__name__}: {how}; is `loss` used, and its weight above 0?", stacklevel=2)


class _Stopped(BaseException):
    """Ends a run as if its process had been killed; not an Exception, which a run might handle."""


class _StoppingCheckpoint(Checkpoint):
    """Ends the run after each write."""

    def write(self, saved: Any) -> None:
        super().write(saved)
        raise _Stopped


class _EveryEpoch(Pace):
    """A checkpoint is due after every epoch."""

    def due(self) -> bool:
        return True


def _require(kept: Any, how: str) -> None:
    if not kept:
        raise AssertionError(how)


def _seed_global_generators(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)


def _global_generators() -> tuple[Any, ...]:
    """The states of the global generators, in a form that can be compared."""
    return random.getstate(), repr(np.random.get_state(legacy=False)), torch.get_rng_state().tolist()
