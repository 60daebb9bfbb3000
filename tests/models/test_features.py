"""ContinualClassifier before a frozen network: lessons of texts and images, saved models, and what is refused."""

import json
import re

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from support.extractors import SHAS, install, letters, texts
from torch import nn

import prer
from prer.errors import InputError
from prer.features.extractor import sha256_of
from prer.features.named import named
from prer.learners import encoding
from prer.nn.computed import Projection

pytestmark = [
    pytest.mark.usefixtures("extractors"),
    pytest.mark.filterwarnings("ignore:after task .* the memory's samples"),  # two epochs are too short
]

DIGITS = load_digits()
FEATURES = ["minilm", "a function", "an object with encode", "a module", "efficientnet-lite0"]
OF_TEXTS = FEATURES[:3]


class Sentences:
    """A model as in sentence-transformers."""

    def encode(self, batch, convert_to_numpy=True, show_progress_bar=True):
        return letters(batch).numpy()


def network(seed=0):
    """A small network with batch normalisation, in training mode."""
    torch.manual_seed(seed)
    layers = nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    return nn.Sequential(*layers)


def given(case):
    """What a user gives as features; a new object each time."""
    made = {"a function": lambda: letters, "an object with encode": Sentences, "a module": network}
    return made[case]() if case in made else case


def lesson(case, number):
    """The first lesson brings two classes, and the second a new one and more of a known one."""
    classes = ("pay card", "fly pay")[number]
    if case in OF_TEXTS:
        return texts(classes, seed=number)
    chosen = np.concatenate([np.flatnonzero(c == DIGITS.target)[number * 20 :][:20] for c in ((0, 1), (2, 0))[number]])
    return DIGITS.images[chosen] / 16, DIGITS.target[chosen]


def classifier(case, method="prer", **settings):
    """A classifier that is taught in no time."""
    if method == "prer":
        method = prer.PRER(encoder="identity", embedding="auto", density="mixture", answer="both", epochs=2)
    return prer.ContinualClassifier(method, features=given(case), device="cpu", **settings)


def taught(case, *numbers, **settings):
    model = classifier(case, **settings)
    for number in numbers or (0, 1):
        model.partial_fit(*lesson(case, number))
    return model


def known(model):
    """What a call that fails must not change."""
    return model.state_digest_, model.classes_.tolist(), model.model_.lessons, model.model_.reading


def refused(model, sentence, call):
    """Assert that a call is refused with this sentence, in one line, and that the model is as it was."""
    before = known(model)
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    assert known(model) == before


# -- lessons and saved models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["prer", "slda"])
@pytest.mark.parametrize("case", FEATURES)
def test_a_saved_model_continues_as_if_it_had_not_been_saved(case, method, tmp_path):
    whole, model = taught(case, method=method), taught(case, 0, method=method)
    own = {} if case in SHAS else {"features": given(case)}
    again = prer.load(model.save(tmp_path / "model"), device="cpu", **own)
    again.partial_fit(*lesson(case, 1))
    assert again.state_digest_ == whole.state_digest_ != model.state_digest_
    assert again.classes_.tolist() == whole.classes_.tolist() and len(whole.classes_) == 3
    x, y = lesson(case, 1)
    assert again.predict_proba(x).tobytes() == whole.predict_proba(x).tobytes()
    assert again.score(x, y) == whole.score(x, y) > 0.8


@pytest.mark.parametrize("case", FEATURES)
def test_one_sample_is_answered_as_among_others_after_loading(case, tmp_path):
    own = {} if case in SHAS else {"features": given(case)}
    model = prer.load(taught(case).save(tmp_path / "model"), device="cpu", **own)
    x = lesson(case, 1)[0][:10]
    together = model.predict_proba(x)
    alone = np.concatenate([model.predict_proba(x[i : i + 1]) for i in range(10)])
    np.testing.assert_allclose(alone, together, atol=1e-5)
    assert [model.predict(x[i : i + 1])[0] for i in range(10)] == model.predict(x).tolist()


def in_many_forms(x, y):
    """Texts with their labels, as pairs of what `partial_fit` takes."""
    frame = pandas.DataFrame({"number": range(len(x)), "text": x, "label": y})
    return {
        "lists": (x, y),
        "tuple": (tuple(x), y),
        "array": (np.array(x), np.array(y)),
        "array of objects": (np.array(x, dtype=object), np.array(y, dtype=object)),
        "series": (pandas.Series(x), pandas.Series(y)),
        "column": (frame[["text"]], y),
        "frame": (frame, "label"),
        "frame, last column": (frame, None),
        "pairs": (list(zip(x, y, strict=True)), None),
        "rows": ([{"text": text, "label": label} for text, label in zip(x, y, strict=True)], None),
        "rows of sentences": ([{"sentence": text, "label": label} for text, label in zip(x, y, strict=True)], None),
    }


@pytest.mark.parametrize("form", in_many_forms(*texts("pay")))
def test_texts_in_any_form_give_the_same_model(form):
    model = classifier("minilm", "slda")
    for number in (0, 1):
        model.partial_fit(*in_many_forms(*lesson("minilm", number))[form])
    assert model.state_digest_ == taught("minilm", method="slda").state_digest_
    asked, labels = in_many_forms(*texts("pay card fly", seed=5))[form]
    assert model.score(asked, labels) == model.score(*texts("pay card fly", seed=5)) > 0.8
    if form != "pairs":
        assert model.predict(asked).tolist() == model.predict(texts("pay card fly", seed=5)[0]).tolist()


def test_pictures_of_any_size_give_the_same_model_as_the_array_of_their_pixels():
    x, y = lesson("a module", 0)
    x = (x * 240).astype(np.uint8)
    pictures = [(Image.fromarray(image), int(label)) for image, label in zip(x, y, strict=True)]
    rows = [{"image": image, "label": label} for image, label in pictures]
    models = [classifier("efficientnet-lite0", "ncm") for _ in range(3)]
    for model, same in zip(models, ((x, y), (pictures, None), (rows, None)), strict=True):
        model.partial_fit(*same)
    assert len({model.state_digest_ for model in models}) == 1
    large = [Image.fromarray(np.kron(image, np.ones((5, 5), np.uint8))) for image in x]
    mixed = [image if i % 2 else pictures[i][0] for i, image in enumerate(large)]
    assert np.mean(models[1].predict(mixed) == models[1].predict(x)) > 0.8


def test_with_nothing_set_a_model_over_features_has_the_settings_for_features(tmp_path):
    model = prer.ContinualClassifier(features="minilm", device="cpu")
    learner = model._new().learner
    assert (learner.encoder, learner.embedding, learner.answer) == ("identity", "auto", "both")
    assert learner.density.name == "mixture"
    chosen = prer.ContinualClassifier("naive", features="minilm", device="cpu").partial_fit(*lesson("minilm", 0))
    again = prer.load(chosen.save(tmp_path / "model"))
    assert again.get_params() == chosen.get_params()  # the settings are recognised: "naive", not Naive(...)


def test_a_model_folder_names_the_extractor_and_its_checksum_and_has_no_sample(tmp_path):
    for case, sha256, name in (("minilm", SHAS["minilm"], "minilm"), ("a module", "", "Sequential")):
        model = taught(case)
        folder = model.save(tmp_path / name)
        reading = json.loads((folder / "model.json").read_text())["reading"]
        kind = "texts" if case == "minilm" else "images"
        expected = {"extractor": name, "weights": sha256 or sha256_of(network()), "inputs": kind}
        assert {key: reading[key] for key in expected} == expected
        written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        for number in (0, 1):
            x = lesson(case, number)[0]
            inputs = [text.encode() for text in x] if case == "minilm" else [image.tobytes() for image in x]
            vectors = letters(x) if case == "minilm" else network().eval()(torch.tensor(x).float().unsqueeze(1))
            vectors = [vector.tobytes() for vector in vectors.detach().numpy()]
            assert [sample for sample in (*inputs, *vectors) if sample in written] == []
        weights = [tensor.numpy().tobytes() for tensor in network().state_dict().values() if tensor.numel() > 8]
        assert [tensor for tensor in weights if tensor in written] == []


def test_samples_of_a_class_are_vectors():
    made = taught("minilm").sample("pay", 5)
    assert made.shape == (5, 26) and np.abs(made.mean(0) - letters(texts("pay")[0]).numpy().mean(0)).max() < 0.3


@pytest.mark.parametrize(
    ("forged", "sentence"),
    [
        ({"extractor": "evil\n\x1b[2J" + "x" * 5000}, "which is not part of prer; give it in Python"),
        ({"extractor": "../../etc/passwd"}, "which is not part of prer"),
        ({"extractor": "efficientnet-lite0"}, "but this is efficientnet-lite0 bbbbbbbb"),
        ({"weights": "\x1b[31m" + "f" * 5000}, "minilm .*, but this is minilm aaaaaaaa; give the same one"),
        ({"weights": ""}, "taught with the feature extractor minilm, but this is minilm aaaaaaaa"),
        ({"inputs": "images"}, "cannot be read|are images|give images"),
        ({"extractor": ""}, "cannot be read"),
        ({"inputs": ""}, "cannot be read"),
        ({"extractor": ["minilm"]}, "cannot be read"),
        ({"size": 10**9}, "cannot be read"),
    ],
)
def test_a_forged_reading_is_refused_in_one_printable_sentence(forged, sentence, tmp_path):
    file = taught("minilm", 0).save(tmp_path / "model") / "model.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps(about | {"reading": about["reading"] | forged}))
    with pytest.raises(InputError, match=sentence) as caught:
        prer.load(tmp_path / "model").predict(["pay bill"])
    assert str(caught.value).isprintable() and len(str(caught.value)) < 300


def test_models_over_features_have_a_format_that_older_versions_refuse(tmp_path):
    features = json.loads((taught("minilm", 0).save(tmp_path / "features") / "model.json").read_text())
    x, y = DIGITS.data[:20], np.arange(20) % 2
    usual = prer.ContinualClassifier("slda", device="cpu").partial_fit(x, y).save(tmp_path / "usual")
    assert (features["format"], json.loads((usual / "model.json").read_text())["format"]) == (3, 2)


# -- another extractor -------------------------------------------------------------------------------------------------


def changed():
    """The same network with one weight changed."""
    made = network()
    with torch.no_grad():
        made[0].weight[0, 0, 0, 0] += 1e-3
    return made


def other(batch):
    return letters(batch)


OTHERS = {
    "another module": ("a module", lambda: nn.Flatten(), "extractor Sequential [0-9a-f]{8}, but this is Flatten"),
    "changed weights": ("a module", changed, "Sequential [0-9a-f]{8}, but this is Sequential [0-9a-f]{8}; give the"),
    "another name": (
        "a module",
        lambda: "efficientnet-lite0",
        "but this is efficientnet-lite0 bbbbbbbb; give the same",
    ),
    "another function": ("a function", lambda: other, "extractor letters, but this is other; give the same one"),
    "no extractor": ("a function", lambda: 5, "features='?5'?: give 'minilm' or"),
    "an unknown name": ("minilm", lambda: "minlm", "there is no feature extractor 'minlm', did you mean 'minilm'"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_model_refuses_another_extractor_however_it_is_given(case, tmp_path):
    own, wrong, sentence = OTHERS[case]
    model = taught(own, 0)
    folder = model.save(tmp_path / "model")
    refused(model, sentence, lambda: prer.load(folder, features=wrong()))
    x, y = lesson(own, 1)
    model.set_params(features=wrong())
    for call in (lambda: model.partial_fit(x, y), lambda: model.predict(x), lambda: model.score(x, y)):
        refused(model, sentence, call)
    assert model.set_params(features=given(own)).predict(x).shape == (len(x),)


def test_weights_that_change_between_two_lessons_are_noticed():
    model = taught("a module", 0)
    with torch.no_grad():
        model.features[0].weight[0, 0, 0, 0] += 1e-3
    refused(model, "but this is Sequential", lambda: model.partial_fit(*lesson("a module", 1)))


def test_a_known_network_with_other_weights_is_refused(monkeypatch, tmp_path):
    folder = taught("minilm", 0).save(tmp_path / "model")
    install(monkeypatch, minilm="c" * 64)
    model = prer.load(folder)
    sentence = "taught with the feature extractor minilm aaaaaaaa, but this is minilm cccccccc; give the same one"
    refused(model, sentence, lambda: model.predict(["pay bill"]))
    refused(model, sentence, lambda: model.partial_fit(*lesson("minilm", 1)))


@pytest.mark.parametrize("case", [case for case in FEATURES if case not in SHAS])
def test_a_model_with_a_network_of_ones_own_asks_for_it(case, tmp_path):
    model = prer.load(taught(case, 0).save(tmp_path / "model"))
    x, y = lesson(case, 1)
    name = {"a function": "letters", "a module": "Sequential"}.get(case, "Sentences")
    sentence = f"with features of {name}, which is not part of prer; give it in Python: prer.load"
    for call in (lambda: model.predict(x), lambda: model.partial_fit(x, y), lambda: model.score(x, y)):
        refused(model, sentence, call)
    assert model.sample(model.classes_[0], 2).shape[0] == 2  # for which no network is needed


def test_a_model_of_vectors_takes_no_extractor(tmp_path):
    x, y = DIGITS.data[DIGITS.target < 2], DIGITS.target[DIGITS.target < 2]
    model = prer.ContinualClassifier("slda", device="cpu").partial_fit(x, y)
    folder = model.save(tmp_path / "model")
    sentence = "was taught without a feature extractor; leave out features, or make a new model"
    refused(model, sentence, lambda: prer.load(folder, features="minilm"))
    model.set_params(features=network())
    refused(model, sentence, lambda: model.predict(x))
    refused(model, sentence, lambda: model.partial_fit(x, y))


# -- wrong samples, and networks that fail -----------------------------------------------------------------------------

X, Y = texts("pay card", seed=3)
WRONG = {
    "an empty text": ([*X[:-1], " "], Y, "the text in row 24 is empty; fill it or drop the row"),
    "a missing text": (pandas.Series([None, *X[1:]]), Y, "the text in row 1 is empty"),
    "a number": ([*X[:-1], 3], Y, "row 24 holds no text"),
    "a very long text": (
        ["a" * 100_001, *X[1:]],
        Y,
        "the text in row 1 has 100,001 characters, the limit is 100,000; shorten it",
    ),
    "one text": (X[0], Y[:1], "X is one text; give a list of texts"),
    "vectors": (np.zeros((24, 26)), Y, "was taught with texts, but these are vectors; give texts"),
    "images": (np.zeros((24, 8, 8)), Y, "was taught with texts, but these are images; give texts"),
    "nothing": ([], [], "X is empty; give at least one sample"),
    "too few labels": (X, Y[:-1], "X has 24 samples and y has 23 labels; give one label for each sample"),
    "no labels": (X, None, "requires y to be passed, .*; give a label for each sample"),
    "one label of many": (X, [*Y[:-1], None], "some labels are missing; drop those samples or label them"),
    "a frame of numbers": (pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), ["a", "b"], "holds no texts"),
    "two columns of texts": (pandas.DataFrame({"a": X, "b": X}), Y, "texts could be in several columns"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_samples_are_refused_in_one_sentence_and_change_nothing(case):
    x, y, sentence = WRONG[case]
    model = taught("minilm")
    refused(model, sentence, lambda: model.partial_fit(x, y))
    if case not in ("too few labels", "no labels", "one label of many"):
        refused(model, sentence, lambda: model.predict(x))


def test_an_empty_text_in_the_first_lesson_leaves_an_unfitted_estimator():
    model = classifier("minilm")
    with pytest.raises(InputError, match="the text in row 2 is empty"):
        model.partial_fit(["pay", ""], ["a", "b"])
    assert not [name for name in vars(model) if name.endswith("_")]


def nan(batch):
    return letters(batch) * np.nan


def raises(batch):
    raise RuntimeError("CUDA error: device-side assert triggered\nCompile with `TORCH_USE_CUDA_DSA`")


FAILING = {
    "maps": (nn.Conv2d(1, 4, 3), r"of 40 inputs, the feature extractor Conv2d returns 40x4x6x6 numbers, .*; pool them"),
    "the wrong channels": (nn.Conv2d(3, 4, 3), r"Conv2d failed on a batch of shape \(40, 1, 8, 8\): "),
    "a tuple": (lambda batch: (batch.flatten(1),), "returns tuple; wrap it in a function"),
}


@pytest.mark.parametrize("case", FAILING)
def test_a_network_that_returns_no_vectors_is_refused_in_one_sentence(case):
    features, sentence = FAILING[case]
    model = prer.ContinualClassifier("slda", features=features, device="cpu")
    with pytest.raises(InputError, match=sentence) as caught:
        model.partial_fit(*lesson("a module", 0))
    assert "\n" not in str(caught.value) and not hasattr(model, "model_")


def test_an_extractor_that_fails_later_changes_nothing():
    behaviour = [letters]

    def mine(batch):
        return behaviour[0](batch)

    model = prer.ContinualClassifier("slda", features=mine, device="cpu").partial_fit(*lesson("minilm", 0))
    for failing, sentence in ((nan, "returns NaN"), (raises, "failed on texts: CUDA error"), (lambda x: None, "None")):
        behaviour[0] = failing
        refused(model, sentence, lambda: model.partial_fit(*lesson("minilm", 1)))
        refused(model, sentence, lambda: model.predict(["pay"]))
    behaviour[0] = lambda batch: letters(batch)[:, :20]  # a narrower vector
    refused(model, "26", lambda: model.partial_fit(*lesson("minilm", 1)))


def test_missing_numbers_have_no_meaning_with_features():
    model = classifier("minilm", missing="median")
    with pytest.raises(InputError, match="missing='median' has no effect with features; leave it out"):
        model.partial_fit(*lesson("minilm", 0))


# -- scikit-learn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FEATURES)
def test_a_clone_has_the_same_features_and_has_learned_nothing(case):
    model = taught(case)
    assert model.get_params()["features"] is model.features
    fresh = clone(model)
    assert not hasattr(fresh, "model_") and type(fresh.features) is type(model.features)
    for number in (0, 1):
        fresh.partial_fit(*lesson(case, number))
    assert fresh.state_digest_ == model.state_digest_


def test_features_and_encoder_are_searched():
    x, y = texts("pay card fly", n=24)
    grid = {"features": ["minilm", letters], "encoder": ["identity", "random"]}
    search = GridSearchCV(classifier("minilm"), grid, cv=2).fit(np.array(x), np.array(y))
    assert search.best_score_ > 0.5 and search.predict(["pay bill money"]).shape == (1,)


def test_a_classifier_over_features_has_no_number_of_features():
    assert not hasattr(taught("minilm"), "n_features_in_") and not hasattr(taught("a module"), "n_features_in_")


# -- the encoder -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["identity", "random"])
@pytest.mark.parametrize("features", [None, "minilm"])
def test_the_encoder_is_that_of_the_argument(encoder, features):
    x, y = (DIGITS.data[:200], DIGITS.target[:200]) if features is None else lesson("minilm", 0)
    learner = prer.PRER(density="mixture", answer="both", epochs=1, embedding=10)
    model = prer.ContinualClassifier(learner, features=features, encoder=encoder, device="cpu").partial_fit(x, y)
    found = model.model_.learner
    assert found.encoder == encoder and isinstance(found.encoder_, Projection)
    assert (found.encoder_.random, found.dimension_) == (encoder == "random", 10)
    assert learner.encoder == "continues"  # the user's own is not changed


def embeddings(n=60, width=120, classes=2):
    """Vectors of unit length, as of a pretrained network, and their labels."""
    rng, y = np.random.default_rng(0), np.arange(n) % classes
    x = rng.normal(size=(classes, width))[y] + rng.normal(size=(n, width)) * rng.uniform(0.5, 2, width)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), y


def default_of(x, y):
    """The default model of these vectors, but for its epochs."""
    learner = prer.PRER(encoder="patches", embedding="auto", density="mixture", answer="both", epochs=1)
    return prer.ContinualClassifier(learner, device="cpu").partial_fit(x, y)


def test_vectors_like_embeddings_are_scaled_alike_and_others_each_by_itself():
    x, y = embeddings()
    uneven = x.copy()
    uneven[:, 0] *= 100
    for vectors, alike in ((x, True), (x[:, :99], False), (uneven, False)):
        std = default_of(vectors, y).model_.learner.inputs_.std[0].numpy()
        own = vectors.astype(np.float64).std(0, ddof=1)
        np.testing.assert_allclose(std, np.sqrt((own**2).mean()) if alike else own, rtol=1e-4)


def test_models_of_tables_are_what_they_were_before_embeddings_were_recognised(monkeypatch):
    x, y = embeddings()
    table, narrow = DIGITS.data[:60] + np.arange(64), x[:, :50]
    found = [default_of(vectors, y).state_digest_ for vectors in (table, narrow, x)]
    monkeypatch.setattr(encoding, "MANY", 10**9)
    without = [default_of(vectors, y).state_digest_ for vectors in (table, narrow, x)]
    assert [a == b for a, b in zip(found, without, strict=True)] == [True, True, False]


def test_features_are_scaled_alike_however_few_they_are():
    learner = taught("minilm", 0).model_.learner
    own = letters(lesson("minilm", 0)[0]).std(0)
    varies = own > 0
    alike = own.max() <= learner.inputs_.alike * own.median()
    expected = own[varies].square().mean().sqrt().expand(26) if alike else torch.where(varies, own, 1.0)
    torch.testing.assert_close(learner.inputs_.std[0], expected)


# -- progress ----------------------------------------------------------------------------------------------------------


def test_the_number_of_samples_is_counted_if_asked(capsys):
    taught("minilm", 0)
    assert capsys.readouterr() == ("", "")
    taught("minilm", 0, verbose=True)
    out, err = capsys.readouterr()
    assert out == "" and re.search(r"features \(minilm\).*24", err)


def test_a_network_is_asked_once_for_each_sample(extractors):
    model = taught("minilm")
    assert extractors == [24, 24]
    model.predict(["pay bill"] * 3)
    assert extractors == [24, 24, 1] and named.cache_info().currsize == 1
