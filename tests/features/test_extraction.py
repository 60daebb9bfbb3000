"""Features of samples, in batches: what the reading says of them, and what is refused before a network is asked."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.extractors import letters, places, texts
from torch import nn

from prer.data.arrays import Data
from prer.data.reading import Reading
from prer.data.resizing import resized
from prer.errors import InputError
from prer.features import extraction
from prer.features.extraction import extracted, kind_of, vectors
from prer.features.extractor import Extractor, of_function, of_module

OF_TEXTS = Extractor("letters", "a" * 64, letters, "texts")
OF_IMAGES = Extractor("places", "b" * 64, places, "images", 32)
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 20, 12, 3)).astype(np.uint8)


def test_the_reading_names_the_extractor_and_what_it_was_given():
    x, y = texts("pay card")
    known = Reading(label="intent", text="message")
    data = extracted(Data(x, np.array(y), 3, ("pay", "card"), reading=known), OF_TEXTS)
    about = {"extractor": "letters", "weights": "a" * 64, "inputs": "texts", "shape": (26,)}
    assert data.reading == replace(known, **about) and data.checked
    assert torch.equal(data.x, letters(x)) and (data.tests, data.order, data.y.tolist()) == (3, ("pay", "card"), y)
    again = extracted(Data(x, np.array(y), reading=data.reading.before), OF_TEXTS)
    assert again.reading == data.reading  # of a later lesson


def test_images_are_resized_to_what_the_network_sees_and_that_size_is_kept():
    data = extracted(Data(IMAGES, np.arange(5)), OF_IMAGES)
    assert (data.reading.inputs, data.reading.size, data.reading.shape) == ("images", 32, (16,))
    expected = places(resized(torch.from_numpy(IMAGES).permute(0, 3, 1, 2), 32).float() / 255)
    torch.testing.assert_close(data.x, expected)
    chosen = extracted(Data(IMAGES, np.arange(5), reading=Reading(size=16, fit="pad")), OF_IMAGES)
    assert chosen.reading.size == 16 and not torch.equal(chosen.x, data.x)
    assert extracted(Data(IMAGES, np.arange(5)), of_function(places)).reading.size == 0


def test_one_sample_has_the_features_that_it_has_among_others():
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Dropout())
    for x, extractor in ((IMAGES, of_module(net)), (IMAGES, OF_IMAGES), (texts()[0][:5], OF_TEXTS)):
        whole = vectors(x, extractor, Reading())
        alone = torch.cat([vectors(x[i : i + 1], extractor, Reading()) for i in range(5)])
        torch.testing.assert_close(alone, whole, atol=1e-5, rtol=0)


def test_a_single_dark_image_is_bytes_all_the_same():
    dark = np.full((1, 8, 8), 3, np.uint8)
    assert vectors(dark, OF_IMAGES, Reading()).unique().item() == pytest.approx(3 / 255)


def test_samples_are_given_in_batches_and_progress_counts_them(monkeypatch):
    monkeypatch.setattr(extraction, "BATCH", 10)
    sizes, said = [], []
    noted = replace(OF_TEXTS, embed=lambda batch: sizes.append(len(batch)) or letters(batch))
    x = texts()[0][:25]
    assert torch.equal(vectors(x, noted, Reading(), progress=lambda *about: said.append(about)), letters(x))
    what = "features (letters)"
    assert sizes == [10, 10, 5] and said == [(what, done, 25, "texts") for done in (0, 10, 20, 25)]
    said.clear()
    extracted(Data(IMAGES, np.arange(5)), OF_IMAGES, progress=lambda *about: said.append(about))
    extracted(
        Data(np.zeros((5, 3)), np.arange(5)), of_function(lambda x: x), progress=lambda *about: said.append(about)
    )
    assert [unit for *_, unit in said] == ["images", "images", "vectors", "vectors"]


def test_equal_texts_are_computed_once(data_folder):
    asked, x = [], ["pay", "card", "pay ", "fly", "card", "pay"]
    noted = replace(OF_TEXTS, embed=lambda batch: asked.append(batch) or letters(batch))
    for cached in (False, True, True):
        assert torch.equal(vectors(x, noted, Reading(), cached=cached), letters(x))
    assert asked == [["pay", "card", "fly"]] * 2


def test_vectors_of_several_lengths_are_refused(monkeypatch):
    monkeypatch.setattr(extraction, "BATCH", 2)
    odd = of_function(lambda batch: torch.zeros(len(batch), 3 + len(batch)))
    with pytest.raises(InputError, match="returns vectors of 4 numbers after 5; its vectors must have one length"):
        vectors(np.zeros((5, 2)), odd, Reading())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_a_network_may_change_its_batch_but_not_the_samples(dtype):
    x = np.full((4, 8, 8, 3), 1, dtype)
    before = x.copy()
    made = vectors(x, of_function(lambda batch: batch.sub_(batch).mean((2, 3))), Reading())
    assert not made.any() and np.array_equal(x, before)
    v = torch.ones(4, 3)
    vectors(v, of_module(nn.Sequential(nn.Threshold(2, 0, inplace=True))), Reading())
    assert v.all()


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (["a"], "texts"),
        (("a", "b"), "texts"),
        (np.array(["a", "b"]), "texts"),
        (np.array(["a", None], dtype=object), "texts"),
        (np.zeros((2, 3)), "vectors"),
        (torch.zeros(2, 3), "vectors"),
        (np.zeros((2, 8, 8)), "images"),
        (torch.zeros(2, 3, 8, 8), "images"),
    ],
)
def test_samples_are_texts_images_or_vectors(x, kind):
    assert kind_of(x) == kind


@pytest.mark.parametrize(
    ("x", "extractor", "sentence"),
    [
        (["a"], OF_IMAGES, "the feature extractor places is for images, but these are texts"),
        (np.zeros((2, 3)), OF_IMAGES, "places is for images, but these are vectors"),
        (IMAGES, OF_TEXTS, "letters is for texts, but these are images"),
        (["a", " "], OF_TEXTS, "the text in row 2 is empty; fill it or drop the row"),
        (["a", None], OF_TEXTS, "the text in row 2 is empty"),
        (["a", 3], OF_TEXTS, "row 2 holds no text; write it as text, or drop the row"),
        (np.zeros((0, 8, 8)), OF_IMAGES, r"x has shape \(0, 8, 8\)"),
        (np.full((2, 8, 8), 2.0), OF_IMAGES, r"float images must lie in \[0, 1\]"),
        (np.full((2, 3), np.nan), of_function(lambda x: x), "2 of 2 samples contain NaN"),
    ],
)
def test_what_an_extractor_is_not_for_is_refused_before_it_is_asked(x, extractor, sentence):
    asked = replace(extractor, embed=lambda batch: pytest.fail("it was asked"))
    with pytest.raises(InputError, match=sentence):
        vectors(x, asked, Reading())


@pytest.mark.parametrize(
    ("x", "inputs"), [(IMAGES, "texts"), (np.zeros((2, 3)), "texts"), (["a"], "images"), (["a"], "vectors")]
)
def test_a_model_goes_on_with_the_kind_of_samples_that_it_began_with(x, inputs):
    sentence = f"the model was taught with {inputs}, but these are {kind_of(x)}; give {inputs}"
    with pytest.raises(InputError, match=sentence):
        extracted(Data(x, np.arange(len(x)), reading=Reading(inputs=inputs)), of_function(places))


def test_features_are_kept_only_if_asked_and_if_a_checksum_names_the_weights(data_folder):
    x = texts()[0]
    vectors(x, OF_TEXTS, Reading())
    vectors(x, replace(OF_TEXTS, sha256=""), Reading(), cached=True)
    assert not (data_folder / "features").exists()
    made = vectors(x, OF_TEXTS, Reading(), cached=True)
    absent = replace(OF_TEXTS, embed=lambda batch: pytest.fail("it was asked"))
    assert torch.equal(vectors(x, absent, Reading(), cached=True), made)
    changed = [*x[:-1], x[-1] + "!"]
    assert torch.equal(vectors(changed, OF_TEXTS, Reading(), cached=True), letters(changed))
