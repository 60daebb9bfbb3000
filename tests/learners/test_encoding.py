"""Which encoder a learner has, and what it is computed from."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from prer import NCM, PRER, SLDA, Naive, Replay, Stream, learn
from prer.errors import InputError
from prer.learners import encoding
from prer.nn.computed import Inverse, Patches, Projection
from prer.nn.networks import Decoder, Encoder

DIGITS = load_digits()
QUICK = {"epochs": 2, "epochs_autoencoder": 2, "density": "mixture", "answer": "both"}


def started(learner, shape):
    learner.start(shape, (0, 1))
    return learner


def stream(images=True, classes=4, per_task=2):
    chosen = DIGITS.target < classes
    x = DIGITS.images[chosen] / 16 if images else DIGITS.data[chosen]
    return Stream.split(x, DIGITS.target[chosen], classes_per_task=per_task, scenario="class")


def fixed(learner):
    """The encoder's tensors."""
    return {name: tensor.clone() for name, tensor in learner.state().items() if name.startswith("encoder.")}


@pytest.mark.parametrize(
    ("encoder", "shape", "kind", "decoder", "dimension"),
    [
        ("continues", (1, 8, 8), Encoder, Decoder, 50),
        ("rests", (64,), Encoder, Decoder, 50),
        ("patches", (1, 8, 8), Patches, Decoder, 50),
        ("patches", (64,), Projection, Inverse, 50),
        ("patches", (7,), Projection, Inverse, 7),
        ("identity", (7,), Projection, Inverse, 7),
        ("identity", (1, 8, 8), Projection, Inverse, 50),
    ],
)
def test_the_encoder_fits_setting_and_shape(encoder, shape, kind, decoder, dimension):
    learner = started(PRER(encoder=encoder), shape)
    assert isinstance(learner.encoder_, kind) and isinstance(learner.decoder_, decoder)
    z = learner.encoder_(torch.zeros(2, 3, *shape))
    assert z.shape == (2, 3, dimension) and learner.decoder_(z).shape == (2, 3, *shape)
    assert learner.dimension_ == learner.density_.dimension == dimension


@pytest.mark.parametrize(("shape", "expected"), [((1, 28, 28), 100), ((3, 32, 32), 200), ((300,), 200), ((16,), 16)])
def test_auto_is_chosen_by_the_shape(shape, expected):
    assert started(PRER(encoder="patches", embedding="auto"), shape).dimension_ == expected


@pytest.mark.parametrize("images", [True, False])
@pytest.mark.parametrize("name", ["patches", "identity"])
def test_an_encoder_is_computed_from_the_first_task_alone_and_then_rests(name, images):
    found = []
    for classes in (2, 4):
        learner = PRER(encoder=name, embedding=20, **QUICK)
        learn(stream(images, classes), learner, seeds=2, warned=True)
        found.append(fixed(learner))
    first, later = found
    assert first.keys() == later.keys() and len(first) >= 3
    assert all(torch.equal(tensor, later[key]) for key, tensor in first.items())


@pytest.mark.parametrize("kind", [Naive, Replay])
def test_other_learners_train_their_head_on_a_computed_encoder(kind):
    learner = kind(encoder="patches", epochs=2)
    learn(stream(), learner, seeds=2, warned=True)
    alone = kind(encoder="patches", epochs=2)
    learn(stream(classes=2), alone, seeds=2, warned=True)
    assert all(torch.equal(tensor, fixed(alone)[key]) for key, tensor in fixed(learner).items())


def test_seeds_compute_it_from_their_own_samples():
    weights = {}
    for seeds in ([0, 1], [1]):
        learner = PRER(encoder="patches", **QUICK)
        learn(stream(classes=2), learner, seeds=seeds, warned=True)
        weights[len(seeds)] = learner.encoder_.weight
    assert torch.equal(weights[2][1], weights[1][0]) and not torch.equal(weights[2][0], weights[2][1])


def test_closed_forms_sum_over_patches_if_asked():
    plain, patches = SLDA(), SLDA(encoder="patches", embedding=30)
    accuracy = [
        learn(stream(classes=10), learner, seeds=2, warned=True).metrics["final_accuracy"]["mean"]
        for learner in (plain, patches)
    ]
    assert accuracy[1] > accuracy[0]
    assert plain.sums_.get_buffer("totals").shape == (2, 10, 64)
    assert patches.sums_.get_buffer("totals").shape == (2, 10, 30)
    assert not any(name.startswith("encoder") for name in plain.state())


def embeddings(width, classes=4, n=40):
    """Vectors of unit length as of a pretrained network, with their labels."""
    rng, y = np.random.default_rng(0), np.arange(classes * n) % classes
    strong = rng.normal(size=(classes * n, 10)) * 0.8 ** np.arange(10) @ rng.normal(size=(10, width))
    x = rng.normal(size=(classes, width))[y] + strong + 0.05 * rng.normal(size=strong.shape)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), y


@pytest.mark.filterwarnings("ignore:after task .* the memory's samples")
@pytest.mark.parametrize("encoder", ["identity", "patches"])
@pytest.mark.parametrize("size", [10, 120])
def test_embeddings_of_embeddings_are_those_of_scikit_learn(encoder, size):
    """One scale for all numbers, and principal components that are not whitened, both of the first task alone."""
    x, y = embeddings(120)
    learner, seeds = PRER(encoder=encoder, embedding=size, **QUICK), (0, 3)
    vectors = Stream.split(x, y, classes_per_task=2, scenario="class")
    learn(vectors, learner, seeds=seeds, device="cpu", warned=True)
    for s, rows in enumerate(vectors[0].train_rows(seeds)):
        first = vectors[0].samples(rows)[0].double().numpy()
        scaled = (first - first.mean(0)) / np.sqrt(first.var(0, ddof=1).mean())
        every = (x - first.mean(0)) / np.sqrt(first.var(0, ddof=1).mean())
        expected = PCA(size, svd_solver="full").fit(scaled).transform(every) if size < 60 // 3 else every
        made = learner.encoder_(learner.inputs_(torch.from_numpy(x).expand(2, -1, -1)))[s].numpy()
        signs = np.sign((made * expected).sum(0)) if size == 10 else 1
        np.testing.assert_allclose(made, signs * expected, atol=2e-2 if size == 10 else 1e-4)


@pytest.mark.filterwarnings("ignore:after task .* the memory's samples")
def test_random_directions_are_those_of_the_seed_whatever_the_data():
    found = []
    for scale in (1, 50):
        x, y = embeddings(60)
        learner = PRER(encoder="random", embedding=20, **QUICK)
        learn(Stream.split(scale * x + scale, y, scenario="class"), learner, seeds=2, device="cpu", warned=True)
        found.append(learner.encoder_.basis)
    assert torch.equal(*found) and not torch.equal(found[0][0], found[0][1])
    torch.testing.assert_close(found[0].mT @ found[0], torch.eye(20).expand(2, -1, -1), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("encoder", "shape", "features", "sentence"),
    [
        ("continues", (300,), "minilm", ""),
        ("identity", (1, 8, 8), "", ""),
        ("patches", (3, 8, 8), "", ""),
        (
            "identity",
            (50,),
            "",
            "A sample is a vector of 50 numbers; it is centred and scaled, and no encoder is trained.",
        ),
        (
            "patches",
            (50,),
            "x",
            "A sample is a vector of 50 numbers (features of x); it is centred and scaled, and no ",
        ),
        (
            "identity",
            (1280,),
            "",
            "1,280 numbers; it is centred and scaled and projected on 200 principal components of ",
        ),
        (
            "random",
            (384,),
            "minilm",
            "384 numbers (features of minilm); it is centred and scaled and projected on 200 random",
        ),
    ],
)
def test_how_vectors_are_embedded_is_said_in_a_sentence(encoder, shape, features, sentence):
    said = encoding.about_encoder(PRER(encoder=encoder, embedding="auto"), shape, features)
    assert sentence in said and bool(said) == bool(sentence)


def test_settings_without_effect_are_refused():
    with pytest.raises(InputError, match="embedding"):
        NCM(embedding=30)
    NCM(embedding=30, encoder="patches")


def test_with_nothing_set_images_of_other_classes_are_told_apart_by_the_default():
    """One class in the first lesson: filters and directions of it must do for all."""
    from prer import ContinualClassifier

    model = ContinualClassifier()
    for label in range(5):
        own = DIGITS.target == label
        model.partial_fit(DIGITS.images[own][::2] / 16, DIGITS.target[own][::2])
    rest = DIGITS.target < 5
    assert model.score(DIGITS.images[rest][1::2] / 16, DIGITS.target[rest][1::2]) > 0.9
    assert isinstance(model.model_.learner.encoder_, Patches)
    assert np.isin(model.classes_, range(5)).all()


def test_twenty_images_of_each_class_are_enough_for_a_first_lesson():
    """Far fewer than the directions of an embedding: they must not be those of this noise."""
    from prer import ContinualClassifier

    rows = [np.random.default_rng(0).permutation(np.flatnonzero(DIGITS.target == c)) for c in range(4)]
    model = ContinualClassifier()
    for lesson in (rows[:2], rows[2:]):
        own = np.concatenate([of_class[:20] for of_class in lesson])
        model.partial_fit(DIGITS.images[own] / 16, DIGITS.target[own])
    rest = np.concatenate([of_class[20:120] for of_class in rows])
    assert model.score(DIGITS.images[rest] / 16, DIGITS.target[rest]) > 0.9


def test_samples_for_the_computation_are_bounded(monkeypatch):
    monkeypatch.setattr(encoding, "MOST_SAMPLES", 10)
    seen = []
    monkeypatch.setattr(Patches, "start", lambda self, x, address: seen.append(tuple(x.shape)))
    learner = PRER(encoder="patches", **QUICK)
    with pytest.raises(Exception, match="collapsed"):
        learn(stream(classes=2), learner, seeds=2, warned=True)
    assert seen == [(2, 10, 1, 8, 8)]
