"""The contract of every learner: the promises in `prer.testing`, and what is particular to ours."""

import functools
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.learners import CHECKED, CLOSED, NEEDS_GPU, blobs, captured, make, one_head, pictures, started

from prer import Stream, learn
from prer.errors import InputError, RunError
from prer.learners import LEARNERS
from prer.learners.registry import find
from prer.models.folder import load, save
from prer.models.model import Model
from prer.runs.result import accuracy_of
from prer.testing import learner_checks
from prer.training.loop import Step


@functools.cache
def learned(name, build=blobs, **settings):
    """Result, learner and events of a run with two seeds; it is run once, so nobody may change the learner."""
    events, learner = [], make(name, **settings)
    return learn(build(), learner, seeds=2, device="cpu", observe=events.append), learner, events


def test_keeps_its_memory_promise(name):
    result, _, _ = learned(name)
    assert len(result.memory_floats) == len(result.memory_samples) == len(result.transient_floats) == 3
    no_sample, of_each_task, in_all = [0, 0, 0], [40, 80, 120], [40, 40, 40]
    expected = dict.fromkeys(("naive", "prer", "prer-variant", "dgr", "ewc", "si", *CLOSED), no_sample)
    expected |= dict.fromkeys(("lwf", "gem", "agem", "er"), of_each_task)
    expected |= {"replay": in_all, "der": in_all, "joint": [64, 128, 192]}  # 80 % of 2 x 40
    assert result.memory_samples == expected[name]
    # Numbers kept with each sample: 5 features, and its label, its head, 2 logits, 16 of an embedding, a key, a group.
    notes = {"joint": 1, "lwf": 1 + 2, "gem": 1, "agem": 2, "er": 16, "replay": 4, "der": 3 + 2}
    if name in notes:
        assert result.memory_floats == [samples * (5 + notes[name]) for samples in result.memory_samples]
    if name == "naive":
        assert result.memory_floats == [0, 0, 0]
    if name in ("ewc", "si"):
        encoder, head = 5 * 16 + 16 + 16 * 16 + 16, 16 * 8 + 8 + 8 * 8 + 8 + 8 * 2 + 2
        assert result.memory_floats == [2 * (encoder + heads * head) for heads in (1, 2, 3)]
    # Sums over samples, for each class and in all: of 1, features, their squares or products; RanPAC has 32 of its own.
    sums = {"ncm": (1 + 5, 5), "slda": (1 + 5, 25), "ranpac": (32, 1 + 32 * 32)}
    if name in sums:
        assert result.memory_floats == [classes * sums[name][0] + sums[name][1] for classes in (2, 4, 6)]


def test_accuracy_is_that_of_the_predictions(name):
    stream = blobs()
    learner = started(make(name), stream)
    learner.learn(stream[0])
    rows = stream[0].test_rows((0, 1))
    right = learner.predict(stream[0].x[rows], 0) == stream[0].y[rows]
    torch.testing.assert_close(accuracy_of(learner, stream[0]), 100 * right.float().mean(1))


def modules(learner):
    return [m for value in vars(learner).values() if isinstance(value, torch.nn.Module) for m in value.modules()]


OF_PRER = (
    ("prer-variant", {"schedule": "joint"}),
    ("prer-variant", {"restart": True}),
    ("prer", {"density": "gaussian"}),
)
CLASSIC = ("lwf", {"form": "classic"})
DISTILLED = ("prer", {"labels": "distilled"})
RESTING = ("prer", {"encoder": "rests", "answer": "density"})
MIXED = {"density": "mixture", "answer": "both", "embedding": "auto"}
COMPUTED = [("prer", {"encoder": encoder} | MIXED) for encoder in ("patches", "identity", "rests")]
COMPUTED += [(name, {"encoder": "patches"}) for name in ("naive", "replay", "der", "joint", "slda", "ranpac")]
VARIANTS = [*((name, {}) for name in LEARNERS), *OF_PRER, CLASSIC, DISTILLED, RESTING, *COMPUTED]
CHECKS = {
    f"{name} {settings or ''} {check}": function
    for name, settings in VARIANTS
    for check, function in learner_checks(find(name), **CHECKED.get(name, {}) | settings)
    if not settings or (name, settings) in (CLASSIC, DISTILLED) or check.startswith("predicts_the_same_when_loaded")
}


@pytest.mark.parametrize("check", CHECKS)
def test_keeps_the_promises_of_every_learner(check):
    CHECKS[check]()


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=str)
def test_no_module_is_in_training_mode_after_training_or_loading(name, settings, tmp_path):
    stream, (_, learner, _) = blobs(), learned(name, **settings)
    save(tmp_path, Model.learned(learner, list(stream)))
    for which in (learner, load(tmp_path).learner):
        assert modules(which) and not any(module.training for module in modules(which))


def test_networks_are_in_training_mode_during_training_only_even_if_it_fails(trained, monkeypatch):
    stream, seen = blobs(), []

    def step(self, *of_step):
        seen.append(any(module.training for module in modules(learner)))
        raise RunError("stop")

    monkeypatch.setattr(Step, "__call__", step)
    learner = started(make(trained), stream)
    with pytest.raises(RunError, match="stop"):
        learner.learn(stream[0])
    assert seen == [True] and not any(module.training for module in modules(learner))


def test_tasks_with_the_same_classes_share_one_head(name):
    result, learner, _ = learned(name, one_head)
    assert learner.head_of_ == [0, 0, 0]
    ahead = ~np.tri(3, dtype=bool) & np.tri(3, k=1, dtype=bool)
    assert np.isfinite(result.matrix[:, np.tri(3, k=1, dtype=bool)]).all()
    assert np.isfinite(result.untrained).tolist() == [[False, True, True]] * 2
    expected = (result.matrix[:, ahead] - result.untrained[:, 1:]).mean(1)
    np.testing.assert_allclose(result.metrics["forward_transfer"]["values"], expected)


def test_accuracy_before_training_is_that_of_the_initial_weights(trained):
    stream = one_head()
    untrained = learned(trained, one_head)[0].untrained
    beginner = started(make(trained), stream)
    beginner.meet(stream[0])
    np.testing.assert_allclose(untrained[:, 1], accuracy_of(beginner, stream[1]).numpy())


@pytest.mark.parametrize(
    ("setting", "sentence"), [({"epochs": -3}, "epochs=-3: take"), ({"optimiser": "sdg"}, "choose one")]
)
def test_wrong_settings_are_refused(trained, setting, sentence):
    with pytest.raises(InputError, match=sentence):
        learn(blobs(), make(trained, **setting), seeds=1, device="cpu")


def test_tasks_out_of_order_are_refused(name):
    with pytest.raises(InputError, match="task 2 was given before task 1"):
        started(make(name), blobs()).learn(blobs()[1])


def test_moves_are_made_in_training_only_and_differ_by_epoch(trained, monkeypatch):
    stream = pictures().augmented(crop=2, flip=True)
    learner = started(make(trained), stream)
    _, _, fed, _ = next(iter(captured(learner, stream[0], monkeypatch).values()))
    assert fed[1].shape == (*fed[0].shape, 3)
    plain, moved = (learn(s, make(trained), seeds=1, device="cpu") for s in (pictures(), stream))
    again = learn(stream, make(trained), seeds=1, device="cpu")
    assert plain.digest != moved.digest == again.digest
    rows = stream[0].test_rows((0, 1))
    assert torch.equal(stream[0].samples(rows)[0], stream[0].x[rows])


def test_images_can_be_standardised_by_the_first_task(trained):
    stream = pictures()
    learner = make(trained, normalise=True)
    learn(stream, learner, seeds=2, device="cpu")
    layer = learner.encoder_.layers[0]
    x = stream[0].x[stream[0].train_rows((0, 1))].double() / 255
    torch.testing.assert_close(layer.mean, x.mean((1, 3, 4)).float())
    torch.testing.assert_close(layer.std, x.std((1, 3, 4)).float(), atol=1e-5, rtol=1e-4)
    seen = layer(x.float())
    assert float(seen.mean().abs()) < 1e-4
    assert abs(float(seen.std()) - 1) < 1e-3


@NEEDS_GPU
def test_data_that_stays_on_the_host_gives_the_same(name, monkeypatch):
    there = learn(pictures(), make(name), seeds=2, device="cuda")
    monkeypatch.setattr("prer.streams.task._fits", lambda size: False)
    assert pictures().to("cuda")[0].x.device.type == "cpu"
    here = learn(pictures(), make(name), seeds=2, device="cuda")
    np.testing.assert_allclose(here.matrix, there.matrix, atol=100 / 8)


def test_a_loss_that_explodes_ends_the_run_with_a_sentence(trained):
    stream = blobs()
    broken = replace(stream, tasks=tuple(replace(task, x=task.x * 1e30) for task in stream))
    settings = {"lr": 1e30, "optimiser": "sgd"} | ({"lr_autoencoder": 1e30} if trained == "prer" else {})
    with pytest.raises(RunError, match=r"became .* in task 1, phase .*lower learning rate"):
        learn(broken, make(trained, **settings), seeds=1, device="cpu")


def test_a_step_copies_nothing_from_the_host(trained, monkeypatch):
    """A GPU could not capture such a step."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, size=(40, 9, 8), dtype=np.uint8), np.arange(40) % 2
    plain, tensor = Step.plain, torch.tensor

    def watched(step, *batch):
        with monkeypatch.context() as patch:
            patch.setattr(torch, "tensor", lambda *_, **__: pytest.fail("a tensor was made from numbers of the host"))
            return plain(step, *batch)

    monkeypatch.setattr(Step, "plain", watched)
    learn(Stream.rotated(x, y, tasks=3), make(trained), seeds=2, device="cpu")
    assert torch.tensor is tensor


@NEEDS_GPU
def test_a_captured_step_gives_the_results_of_a_plain_one(trained, monkeypatch):
    replayed = learn(blobs(), make(trained), seeds=2, device="cuda")
    monkeypatch.setattr(LEARNERS[trained], "capturable", False)
    plain = learn(blobs(), make(trained), seeds=2, device="cuda")
    np.testing.assert_allclose(replayed.matrix, plain.matrix, atol=100 / 8)
