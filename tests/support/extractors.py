"""Feature extractors that take no time, under the names of those that ship with extras; and texts for them."""

import torch

from prer.features import named
from prer.features.extractor import Extractor, of_size

WORDS = {"pay": "pay bill money", "card": "card lost stolen", "fly": "plane seat gate", "eat": "bread soup tea"}
SHAS = {"minilm": "a" * 64, "efficientnet-lite0": "b" * 64}


def letters(texts):
    """How often each letter is in each text [B, 26]."""
    return torch.tensor([[text.lower().count(chr(97 + i)) / 4 for i in range(26)] for text in texts])


def places(images):
    """Mean of each of 4 x 4 places of images [B, 16] in [0, 1]."""
    return torch.nn.functional.adaptive_avg_pool2d(of_size(images, 32).mean(1, keepdim=True), 4).flatten(1)


def install(monkeypatch, **sha256):
    """Put fake extractors under the known names; returns a list that grows by the size of each batch."""
    named.named.cache_clear()
    calls = []

    def noted(embed):
        def call(batch):
            calls.append(len(batch))
            return embed(batch)

        return call

    for name, embed, inputs, size in (("minilm", letters, "texts", 0), ("efficientnet-lite0", places, "images", 32)):
        made = Extractor(name, sha256.get(name, SHAS[name]), noted(embed), inputs, size)
        monkeypatch.setitem(named.NAMES, name, lambda device, made=made: made)
    return calls


def texts(classes="pay card fly eat", n=12, seed=0):
    """Texts of these classes, with their labels: words of a class, and some of its letters more."""
    found = []
    for label in classes.split():
        words = WORDS[label].split()
        for i in range(n):
            k = (i + seed) % len(words)
            found.append((f"{words[k]} {words[(k + 1 + i % 2) % len(words)]} {words[k][: 1 + (i + seed) % 4]}", label))
    return [text for text, _ in found], [label for _, label in found]
