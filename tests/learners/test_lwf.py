"""LwF, with kept samples and classic, against its formula, by hand."""

import copy

import torch
import torch.nn.functional as F
from support.learners import SEEDS, STREAMS, TINY, captured, started
from support.one_seed import alone, memory_entries, midway, new_loss

from prer.learners import LWF
from prer.nn.heads import Heads


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
    said = learner.before_[torch.arange(len(SEEDS)).unsqueeze(1), batch.rows]
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for t in range(2):
            encoder, head = alone(learner, seed, t)
            now, before = head(encoder(batch.x[seed])), said[seed, :, t, : head.classes]
            kl = F.kl_div((now / 3).log_softmax(-1), (before / 3).softmax(-1), reduction="batchmean")
            expected = expected + 0.7 * 9 * kl
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@STREAMS
def test_the_classic_form_notes_the_predictions_of_the_old_network_for_the_same_samples(stream, monkeypatch):
    learner = started(LWF(**TINY | {"form": "classic"}), stream, SEEDS)
    learner.learn(stream[0])
    learner.learn(stream[1])
    old = copy.deepcopy((learner.encoder_, learner.heads_))
    noted = []
    monkeypatch.setattr(learner, "after_task", lambda task: noted.append(learner.before_))
    _, _, (at, *_), options = captured(learner, stream[2], monkeypatch)["classifier"]
    (said,) = noted
    assert said.shape == (2, stream[2].size[0], 2, 3)
    for step in range(at.shape[1]):
        z = old[0](learner.inputs_(options["gather"](at[:, step])[1]))
        for t, width in enumerate((3, 2)):
            of_step = said[torch.arange(2).unsqueeze(1), at[:, step], t, :width]
            torch.testing.assert_close(of_step, old[1][t](z), atol=1e-5, rtol=1e-4)
    assert learner.before_ is None
    bank = sum(p[0].numel() for p in Heads([*learner.heads_]).parameters())
    assert learner.transient_floats_ == stream[2].train_rows(SEEDS).shape[1] * 2 * 3 + bank
    assert learner.memory_size() == (0, 0, 0)
