"""LwF, with kept samples and classic, against its formula, by hand."""

import copy

import pytest
import torch
import torch.nn.functional as F
from support.learners import SEEDS, STREAMS, TINY, captured, images, started, vectors
from support.one_seed import alone, disturb, memory_entries, midway, new_loss

from prer.learners import LWF
from prer.learners.distilling import Before
from prer.nn.heads import Heads, mean_cross_entropy
from prer.nn.stacked import floats


@STREAMS
def test_the_noted_predictions_of_kept_samples_are_distilled(stream):
    learner = started(LWF(**TINY | {"size": 12, "memory_batch": 9, "weight": 0.7, "softness": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    assert learner.kept_.get_buffer("logits").shape == (2, 24, 3)
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for x, notes in memory_entries(learner, batch.past[0], seed):
            encoder, head = alone(learner, seed, int(notes["head"]))
            now, before = head(encoder(x))[0], notes["logits"][: head.classes]
            kl = F.kl_div((now / 3).log_softmax(-1), (before / 3).softmax(-1), reduction="sum")
            expected = expected + 0.7 * 9 * kl / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@STREAMS
def test_the_classic_form_distils_what_old_heads_predict_for_new_samples(stream):
    learner = started(LWF(**TINY | {"form": "classic", "weight": 0.7, "softness": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    said = learner.before_.logits(batch.x)
    disturb(learner.encoder_, scale=1.0)  # for small changes the loss hardly depends on the temperature
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for t in range(2):
            encoder, head = alone(learner, seed, t)
            now, before = head(encoder(batch.x[seed])), said[seed, :, t, : head.classes]
            kl = F.kl_div((now / 3).log_softmax(-1), (before / 3).softmax(-1), reduction="batchmean")
            expected = expected + 0.7 * 9 * kl
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


class Recorded(LWF):
    """The classic form with the old heads' logits of all new samples recorded in advance, without augmentation."""

    def learn(self, task):
        self.said = None
        if len(self.heads_):
            z = self.embed(task, task.train_rows(self.address_.seeds))
            self.said = [head(z).detach() for head in self.heads_]
        super().learn(task)

    def loss(self, batch):
        if self.said is None:
            return super().loss(batch)
        z, seeds = self.encoder_(batch.x), torch.arange(len(batch.rows)).unsqueeze(1)
        total, now = mean_cross_entropy(batch.head(z, batch.noise), batch.y), batch.heads.every(z)
        for t, said in enumerate(self.said):
            old = (said[seeds, batch.rows] / self.softness).softmax(-1)
            new = (now[:, :, t, : old.shape[2]] / self.softness).log_softmax(-1)
            kl = F.kl_div(new, old, reduction="none").sum(-1).mean(1)
            total = total + self.weight * self.softness**2 * kl
        return total


@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("build", [vectors, images])
def test_without_augmentation_the_classic_form_equals_one_that_records_in_advance(build, scenario):
    # Not Adam: in a task's first step the gradient of old heads is 0, and Adam makes a full step of its rounding.
    settings = TINY | {"form": "classic", "optimiser": "sgd", "lr": 0.1, "epochs": 5}
    learners = [started(kind(**settings), build(scenario=scenario), SEEDS) for kind in (LWF, Recorded)]
    for task in build(scenario=scenario):
        for learner in learners:
            learner.learn(task)
    ours, recorded = (learner.state() for learner in learners)
    for name in ours:
        torch.testing.assert_close(ours[name], recorded[name], atol=1e-5, rtol=1e-4)


def test_the_classic_form_asks_the_old_network_about_the_augmented_samples(monkeypatch):
    stream = images().augmented(crop=2, flip=True)
    learner = started(LWF(**TINY | {"form": "classic"}), stream, SEEDS)
    learner.learn(stream[0])
    asked, logits = [], Before.logits
    monkeypatch.setattr(Before, "logits", lambda before, x: asked.append(x) or logits(before, x))
    _, loss, fed, options = captured(learner, stream[1], monkeypatch)["classifier"]
    learner.before_ = Before.of(learner)  # it was forgotten when the task, without training, was learned
    at, *others = (t[:, 0] for t in fed)
    (batch,) = options["prepare"](*options["gather"](at), *others)
    loss(batch)
    (x,) = asked
    assert torch.equal(x, batch.x) and not torch.equal(x, learner.inputs_(options["gather"](at)[1]))


@STREAMS
def test_the_classic_form_keeps_the_old_network_while_a_task_is_learned(stream, monkeypatch):
    learner = started(LWF(**TINY | {"form": "classic"}), stream, SEEDS)
    learner.learn(stream[0])
    learner.learn(stream[1])
    old = copy.deepcopy((learner.encoder_, learner.heads_))
    frozen = []
    monkeypatch.setattr(learner, "after_task", lambda task: frozen.append(learner.before_))
    learner.learn(stream[2])
    (before,) = frozen
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0])
    said = before.logits(x)
    assert said.shape == (2, stream[2].size[0], 2, 3)
    for t, width in enumerate((3, 2)):
        torch.testing.assert_close(said[:, :, t, :width], old[1][t](old[0](x)), atol=1e-5, rtol=1e-4)
        assert not torch.allclose(said[:, :, t, :width], learner.heads_[t](learner.encoder_(x)), atol=1e-4)
    assert learner.before_ is None
    of_old, of_all = (sum(p[0].numel() for p in Heads([*heads]).parameters()) for heads in (old[1], learner.heads_))
    assert learner.transient_floats_ == floats(learner.encoder_) + of_old + of_all
    assert learner.memory_size() == (0, 0, 0)
