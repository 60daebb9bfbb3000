"""Find a feature extractor: by the name of one that ships with an extra, or from what a user gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from torch import nn

from prer.data.reading import Reading
from prer.errors import InputError
from prer.features import efficientnet, minilm
from prer.features.extractor import Extractor, of_function, of_module, of_sentences
from prer.text import did_you_mean, shown

NAMES: dict[str, Callable[[str], Extractor]] = {module.NAME: module.load for module in (minilm, efficientnet)}
OF_TEXTS = (minilm.NAME,)


@cache
def named(name: str, device: str) -> Extractor:
    """An extractor by its name; it is loaded once."""
    if name not in NAMES:
        what = f"there is no feature extractor {shown(name, 40)!r}"
        raise InputError(f"{what}{did_you_mean(name, NAMES)}")
    return NAMES[name](device)


def extractor_of(reading: Reading, given: Any, device: str) -> Extractor | None:
    """The extractor of a model whose data is read in this way; None if it has none, and an error if it is another one.

    Args:
        reading: how the data of the model is read.
        given: what the user gives; None: the model's own, which must then have a name in `NAMES`.
        device: where it computes.
    """
    wanted = reading.extractor
    if not wanted:
        if given is not None:
            raise InputError(
                "the model was taught without a feature extractor; leave out features, or make a new model"
            )
        return None
    if given is None and wanted not in NAMES:
        how = "give it in Python: prer.load(folder, features=...)"
        raise InputError(f"the model was taught with features of {shown(wanted, 40)}, which is not part of prer; {how}")
    found = as_extractor(wanted if given is None else given, device)
    if (found.name, found.sha256) != (wanted, reading.weights):
        theirs, ours = (
            f"{shown(name, 40)} {shown(sha256[:8])}".strip()
            for name, sha256 in ((wanted, reading.weights), (found.name, found.sha256))
        )
        raise InputError(
            f"the model was taught with the feature extractor {theirs}, but this is {ours}; give the same one"
        )
    return found


def as_extractor(given: Any, device: str) -> Extractor:
    """An extractor from a name, a network, a model of sentences, or a function."""
    if isinstance(given, Extractor):
        return given
    if isinstance(given, str):
        return named(given, device)
    if callable(getattr(given, "encode", None)):
        return of_sentences(given)
    if isinstance(given, nn.Module):
        return of_module(given)
    if callable(given):
        return of_function(given)
    raise InputError(
        f"features={shown(given, 40)}: give {' or '.join(map(repr, NAMES))}, "
        "a torch module, or a function that maps a batch to vectors"
    )
