"""EfficientNet-Lite0 from its wheel."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from prer.data.arrays import Data
from prer.data.reading import Reading
from prer.data.resizing import coloured
from prer.errors import InputError
from prer.features import efficientnet
from prer.features.extraction import extracted, vectors
from prer.features.named import named

pytestmark = pytest.mark.skipif(not all(map(find_spec, efficientnet.PACKAGES)), reason="needs prer[vision]")

GREY = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 1, 20, 30)).astype(np.uint8))


def network():
    return named(efficientnet.NAME, "cpu")


def test_images_of_any_size_and_number_of_channels_have_1280_numbers():
    found = vectors(GREY, network(), Reading())
    assert found.shape == (3, 1280) and found.isfinite().all() and found.std(0).max() > 0.01
    assert torch.equal(found, vectors(coloured(GREY), network(), Reading()))
    data = extracted(Data(GREY.numpy(), np.arange(3)), network())
    assert data.reading.size == efficientnet.SIZE == 160


def test_bytes_and_floats_are_scaled_as_in_its_training():
    """Its wheel has no trace of its training; TensorFlow's code has (x - 127) / 128."""
    import efficientnet_lite_pytorch

    seen = []
    usual = efficientnet_lite_pytorch.EfficientNet.extract_features
    with pytest.MonkeyPatch.context() as patch:
        noted = lambda self, x: seen.append(x) or usual(self, x)  # noqa: E731
        patch.setattr(efficientnet_lite_pytorch.EfficientNet, "extract_features", noted)
        image = torch.stack([torch.zeros(3, 160, 160), torch.ones(3, 160, 160)])
        network()(image)
    assert seen[0][0].unique().tolist() == [-127 / 128] and seen[0][1].unique().tolist() == [1.0]


def test_an_image_has_the_features_that_it_has_among_others():
    whole = vectors(GREY, network(), Reading())
    alone = torch.cat([vectors(GREY[i : i + 1], network(), Reading()) for i in range(3)])
    torch.testing.assert_close(alone, whole, atol=1e-5, rtol=0)


def test_altered_or_truncated_weights_are_refused(tmp_path, monkeypatch):
    source = Path(find_spec(efficientnet.PACKAGES[0]).origin).parent / "models"
    (file,) = source.glob("efficientnet-lite0-*.pth")
    (tmp_path / "models").mkdir()
    found = lambda package: SimpleNamespace(origin=str(tmp_path / "__init__.py"))  # noqa: E731
    monkeypatch.setattr(efficientnet, "find_spec", found)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    for altered in (data, data[:-1], b"\x80\x04cos\nsystem\n(S'touch hacked'\ntR."):
        (tmp_path / "models" / file.name).write_bytes(altered)
        with pytest.raises(InputError, match=f"the weights {file.name} are not the known ones: their sha256 differs"):
            efficientnet.load("cpu")(torch.zeros(1, 3, 8, 8))
