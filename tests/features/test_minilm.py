"""all-MiniLM-L6-v2 from its wheel."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from prer.data.reading import Reading
from prer.errors import InputError
from prer.features import minilm
from prer.features.extraction import vectors
from prer.features.named import named

pytestmark = pytest.mark.skipif(not all(map(find_spec, minilm.PACKAGES)), reason="needs prer[text]")

TEXTS = ["I lost my card", "Somebody has stolen my credit card!", "Which seat do I have on the plane?"]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A copy of the package's small files, with the weights as a link."""
    source = Path(find_spec(minilm.PACKAGES[0]).origin).parent / "model"
    shutil.copytree(source, tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors"))
    found = lambda package: SimpleNamespace(origin=str(tmp_path / "__init__.py"))  # noqa: E731
    monkeypatch.setattr(minilm, "find_spec", found)
    return tmp_path / "model" / "model.safetensors", source / "model.safetensors"


def test_texts_of_one_meaning_have_vectors_of_one_direction(capsys):
    found = named(minilm.NAME, "cpu")(TEXTS)
    assert found.shape == (3, 384) and found.dtype == torch.float32
    np.testing.assert_allclose(found.norm(dim=1), 1, atol=1e-5)
    same, other = found[0] @ found[1], found[0] @ found[2]
    assert same > 0.5 > 0.2 > other
    assert capsys.readouterr() == ("", "")  # no bars of libraries


@pytest.mark.filterwarnings("ignore:some texts are longer")
def test_a_text_has_the_features_that_it_has_among_others_of_any_length():
    texts = [*TEXTS, "a", "no " * 2000, "\u200b", "日本語のテキスト", "line\nbreak\ttab", "😀"]
    extractor = named(minilm.NAME, "cpu")
    whole = vectors(texts, extractor, Reading())
    alone = torch.cat([vectors([text], extractor, Reading()) for text in texts])
    torch.testing.assert_close(alone, whole, atol=1e-5, rtol=0)


def test_texts_that_are_cut_give_a_warning(recwarn):
    network = named(minilm.NAME, "cpu")
    short, long = "no " * 254, "no " * 255  # with a token at each end
    network([short, "a" * 250])
    assert not recwarn.list
    with pytest.warns(UserWarning, match="some texts are longer than the 256 tokens .* only their beginnings count"):
        cut = network([long, short])
    torch.testing.assert_close(cut[0], cut[1], atol=1e-5, rtol=0)


def test_a_text_that_is_no_unicode_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="the feature extractor minilm failed on texts: "):
        named(minilm.NAME, "cpu")(["a \ud800 b"])


def test_altered_or_truncated_weights_are_refused(elsewhere):
    ours, theirs = elsewhere
    data = bytearray(theirs.read_bytes())
    data[-1] ^= 1
    for altered in (data, data[:-1], data[:1000]):
        ours.write_bytes(altered)
        with pytest.raises(InputError, match=r"the weights model\.safetensors are not the known ones: their sha256"):
            minilm.load("cpu")(TEXTS)
    ours.unlink()
    with pytest.raises(InputError, match=r"the weights model\.safetensors cannot be read"):
        minilm.load("cpu")(TEXTS)
