"""`check_learner`: a sound learner passes; each broken one fails the right check, with a helpful message."""

import functools
import random
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from prer import LWF, Learner, Naive
from prer.errors import InputError
from prer.learners.interfaces import MemorySize
from prer.learners.registry import find
from prer.settings import setting
from prer.testing import check_learner, learner_checks


@dataclass(kw_only=True)
class Anchored(Learner):
    """A sound learner: the encoder stays near its weights after the last task."""

    name = "anchored"
    weight: float = setting(1.0, "weight of the distance", low=0)

    def start(self, *arguments, **options):
        super().start(*arguments, **options)
        self.anchor_ = nn.Module()

    def memory(self):
        return {"anchor": self.anchor_}

    def loss(self, batch):
        old = dict(self.anchor_.named_buffers())
        pairs = [(p, old[f"w{i}"]) for i, p in enumerate(self.encoder_.parameters()) if old]
        return super().loss(batch) + self.weight * sum((p - q).square().flatten(1).sum(1) for p, q in pairs)

    def after_task(self, task):
        for i, parameter in enumerate(self.encoder_.parameters()):
            self.anchor_.register_buffer(f"w{i}", parameter.detach().clone())


@dataclass(kw_only=True)
class TimeDependent(Naive):
    name = "time-dependent"

    def loss(self, batch):
        return super().loss(batch) * (1 + time.perf_counter_ns() % 7)


@dataclass(kw_only=True)
class Global(Naive):
    name = "global"

    def loss(self, batch):
        return super().loss(batch._replace(x=batch.x + 0.1 * torch.rand(batch.x.shape)))


@dataclass(kw_only=True)
class Seedless(Naive):
    name = "seedless"

    def start(self, shape, seeds, device="cpu", observe=None):
        super().start(shape, range(7, 7 + len(seeds)), device, observe)


@dataclass(kw_only=True)
class Coupled(Naive):
    name = "coupled"

    def loss(self, batch):
        return super().loss(batch._replace(x=batch.x + batch.x.mean(0)))


@dataclass(kw_only=True)
class OneLoss(Naive):
    name = "one-loss"

    def loss(self, batch):
        return super().loss(batch).mean()


@dataclass(kw_only=True)
class Shared(Naive):
    name = "shared"

    def loss(self, batch):
        return super().loss(batch) / len(self.address_.seeds)


@dataclass(kw_only=True)
class KeepsTasks(Naive):
    name = "keeps-tasks"

    def after_task(self, task):
        self.last_ = task


@dataclass(kw_only=True)
class KeepsCopies(Naive):
    name = "keeps-copies"

    def after_task(self, task):
        self.old_ = {"scaled": self.inputs_(task.samples(task.train_rows((0,)))[0])}


@dataclass(kw_only=True)
class CountsNothing(Anchored):
    name = "counts-nothing"

    def memory_size(self):
        return MemorySize(floats=0, samples=0, bytes=0)


@dataclass(kw_only=True)
class ForgetsOnSave(Naive):
    name = "forgets-on-save"

    def start(self, *arguments, **options):
        super().start(*arguments, **options)
        self.shift_ = 0

    def after_task(self, task):
        self.shift_ += 1

    def scores(self, x, head):
        return super().scores(x, head).roll(self.shift_, dims=-1)


@dataclass(kw_only=True)
class ForgetsOnResume(Naive):
    name = "forgets-on-resume"

    def start(self, *arguments, **options):
        super().start(*arguments, **options)
        self.learned_ = 0

    def after_task(self, task):
        self.learned_ += 1

    def loss(self, batch):
        return super().loss(batch) + self.learned_ * sum(p.square().sum() for p in self.encoder_.parameters())


@dataclass(kw_only=True)
class IgnoresCheckpoints(Naive):
    name = "ignores-checkpoints"

    def train(self, *arguments, **options):
        self.loop_.trained = {}
        super().train(*arguments, **options)


@dataclass(kw_only=True)
class Nothing(Naive):
    name = "nothing"


@dataclass(kw_only=True)
class LearnsNothing(Naive):
    name = "learns-nothing"

    def loss(self, batch):
        return super().loss(batch) * 0


@dataclass(kw_only=True)
class Silent(Naive):
    name = "silent"

    def phases(self, samples, classes):
        return super().phases(samples, classes) | {"warm-up": 1}


@dataclass(kw_only=True)
class TwoClasses(Naive):
    name = "two-classes"

    def after_task(self, task):
        if len(task.labels) != 2:
            raise ValueError("only two classes")


@dataclass(kw_only=True)
class ManyHeads(Naive):
    name = "many-heads"

    def meet(self, task):
        super().meet(task)
        if len(self.tasks_) > 1 and task.head == 0:
            raise KeyError("one head")


@dataclass(kw_only=True)
class Training(Naive):
    name = "training"

    def after_task(self, task):
        self.encoder_.train()


BROKEN = {
    TimeDependent: ("is_deterministic", "the second run ended in another state; draw random numbers from an address"),
    Global: ("ignores_global_generators", "a global generator has changed; draw random numbers from an address"),
    Seedless: ("is_deterministic", "seeds 1 and 2 ended in the same state"),
    Coupled: ("seeds_do_not_affect_each_other", "with another second seed, encoder.* of the first differs"),
    OneLoss: ("learns_vectors", "the loss has the shape (); it must be [S], one value for each of the 2 seeds"),
    Shared: ("seeds_do_not_affect_each_other", "the loss of a seed must not depend on the number of seeds"),
    KeepsTasks: ("keeps_no_undeclared_samples", "`last_` refers to the data of a task; keep nothing of the data"),
    KeepsCopies: ("keeps_no_undeclared_samples", "`old_` has copies of 64 samples, and 0 are declared"),
    CountsNothing: ("counts_its_memory", "numbers are saved for each seed, and 0 counted"),
    ForgetsOnSave: ("predicts_the_same_when_loaded", "`predict` gives other answers on task 1; what a learner needs"),
    ForgetsOnResume: ("resumes_after_any_epoch", "differs; what a learner needs later must be in a module"),
    IgnoresCheckpoints: ("resumes_after_any_epoch", "it trains epochs again that a checkpoint has"),
    LearnsNothing: ("learns_vectors", "guessing reaches 50 %, and 80 % are expected"),
    Silent: ("reports_every_epoch", "`phases` promises 9 epochs, and 6 were reported"),
    TwoClasses: ("takes_tasks_of_any_size", "ValueError: only two classes"),
    ManyHeads: ("shares_a_head", "KeyError: 'one head'"),
    Training: ("predicts_the_same_when_loaded", "`encoder_` is in training mode after training"),
}


@functools.cache
def checks(cls):
    return dict(learner_checks(cls))


@pytest.mark.parametrize("name", checks(Anchored))
def test_a_sound_learner_keeps_every_promise(name):
    checks(Anchored)[name]()


@pytest.mark.parametrize("cls", BROKEN)
def test_a_broken_learner_fails_the_check_of_its_promise(cls):
    name, how = BROKEN[cls]
    with pytest.raises(AssertionError, match=rf"^{cls.__name__} breaks a promise of learners\. .+: ") as caught:
        checks(cls)[name]()
    assert all(part in str(caught.value) for part in how.split("*"))


def test_a_learner_that_does_nothing_is_warned_of():
    with pytest.warns(UserWarning, match="Nothing: after three tasks its networks equal those of naive bit for bit"):
        checks(Nothing)["differs_from_naive"]()
    with pytest.warns(UserWarning, match="LWF: after three tasks"):
        check_learner(LWF, weight=0.0)
    checks(Naive)["differs_from_naive"]()


def test_all_broken_promises_are_listed():
    with pytest.raises(AssertionError, match=r"^\d+ promises are broken:\n") as caught:
        check_learner(LearnsNothing)
    lines = str(caught.value).splitlines()
    assert [line.split(" ")[0] for line in lines[1:]] == ["LearnsNothing"] * (len(lines) - 1)
    assert "A task of vectors that is easy to tell apart is learned" in lines[1]


def test_a_check_leaves_generators_and_registry_as_they_were():
    torch.manual_seed(3), random.seed(3), np.random.seed(3)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    checks(Anchored)["is_deterministic"]()
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    with pytest.raises(InputError, match="unknown learner 'anchored'"):
        find("anchored")


def test_a_class_that_is_no_learner_fails_with_the_reason():
    class Plain(Naive):
        name = "plain"

    with pytest.raises(AssertionError, match=r"InputError: Plain is not a keyword-only dataclass; write @dataclass"):
        checks(Plain)["learns_vectors"]()


def test_a_misspelled_setting_is_named():
    with pytest.raises(AssertionError, match="unexpected keyword argument 'wieght'"):
        check_learner(Anchored, wieght=1.0)
