"""The view into a model: samples, reconstructions, embeddings and accuracies of classes."""

import numpy as np
import pytest
import torch
from support.learners import make, one_head, pictures, started

from prer.learners import PRER
from prer.models.samples import as_data
from prer.report import model_view
from prer.report.model_view import POINTS, SHOWN, look, named


def learned(name, stream, **settings):
    learner = started(make(name, **settings), stream)
    for task in stream:
        learner.learn(task)
    return learner


@pytest.fixture(scope="module")
def prer():
    stream = pictures(per_class=60)
    return learned("prer", stream), stream


def test_only_names_that_occur_several_times_have_their_task():
    assert named([["a"], ["b", "a"], ["c"], ["a"]]) == ["a, task 1", "b", "a, task 2", "c", "a, task 4"]
    assert named([]) == []


def test_real_samples_are_test_samples_of_the_class(prer):
    learner, stream = prer
    for number, class_ in enumerate(look(learner, stream).classes):
        task = stream[number // 2]
        rows = task.test_rows([0])[0]
        mine = rows[task.y[rows] == number % 2][:SHOWN]
        np.testing.assert_array_equal(class_.rows["real"], task.x[mine].numpy())


def test_samples_are_rebuilt_and_generated_at_an_address_of_the_report(prer, monkeypatch):
    learner, stream = prer
    places, generate = [], PRER.generate

    def watched(self, ids, address):
        places.append((set(ids.flatten().tolist()), address.place))
        return generate(self, ids, address)

    monkeypatch.setattr(PRER, "generate", watched)
    view = look(learner, stream)
    assert places == [({number}, ("report", str(number))) for number in range(6)]
    assert view.generates and [c.label for c in view.classes] == list("012345")
    for number, class_ in enumerate(view.classes):
        assert list(class_.rows) == ["real", "rebuilt", "samples"]
        x = torch.from_numpy(class_.rows["real"]).expand(2, -1, -1, -1, -1)
        with torch.no_grad():
            rebuilt = learner.decoder_(learner.encoder_(learner.inputs_(x)))
        difference = class_.rows["rebuilt"].astype(int) - as_data(learner, rebuilt)[0].numpy()
        assert abs(difference).max() <= 1  # other sizes of batches may round otherwise
        made = learner.generate(torch.full((2, POINTS), number), learner.address_ / "report" / number)
        np.testing.assert_array_equal(class_.rows["samples"], as_data(learner, made)[0, :SHOWN].numpy())


def test_embeddings_are_the_first_two_principal_components_of_the_real_ones(prer):
    from sklearn.decomposition import PCA

    learner, stream = prer
    view = look(learner, stream)
    z = []
    with torch.no_grad():
        for number in range(6):
            task = stream[number // 2]
            rows = task.test_rows([0])[0]
            rows = rows[task.y[rows] == number % 2]
            z.append(learner.encoder_(learner.inputs_(task.x[rows].expand(2, -1, -1, -1, -1)))[0])
    expected = PCA(2).fit_transform(torch.cat(z).double().numpy())
    found = np.concatenate([c.real for c in view.classes])
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=1e-3, atol=1e-4)  # signs are arbitrary
    assert all(c.sampled.shape == (POINTS, 2) for c in view.classes)


def test_accuracies_are_those_of_each_class_and_seed():
    stream = one_head()
    learner = learned("naive", stream, epochs=4, lr=5e-3)
    view = look(learner, stream)
    assert not view.generates and all(list(c.rows) == ["real"] and c.real is None for c in view.classes)
    labels = [f"class {c}, task {t}" for t in (1, 2) for c in range(3)] + ["class 1, task 3"]
    assert [c.label for c in view.classes] == labels
    found = iter(view.classes)
    for task in stream:
        for place, output in enumerate(task.outputs):
            accuracy = next(found).accuracy
            for seed in range(2):
                rows = task.test_rows([seed])[0]
                rows = rows[task.y[rows] == place]
                right = learner.predict(task.x[rows].expand(2, -1, -1, -1, -1), task.head)[seed] == output
                assert accuracy[seed] == pytest.approx(100 * float(right.double().mean()))


def test_of_many_classes_only_the_first_are_shown(prer, monkeypatch):
    monkeypatch.setattr(model_view, "MOST_CLASSES", 2)
    classes = look(*prer).classes
    assert [bool(c.rows) for c in classes] == [True, True, False, False, False, False]
    assert all(len(c.accuracy) == 2 for c in classes)


def test_a_generator_without_decoder_and_density_is_shown_too():
    stream = pictures()
    view = look(learned("dgr", stream, epochs_generator=1), stream)
    assert view.generates
    assert all(list(c.rows) == ["real", "samples"] and c.sampled.shape == (POINTS, 2) for c in view.classes)
