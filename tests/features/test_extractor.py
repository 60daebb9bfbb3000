"""Extractors: what a network may return, what is refused in a sentence, and that the network stays as it was."""

import copy
from collections import OrderedDict
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from prer.errors import InputError
from prer.features import extractor as module
from prer.features.extractor import evaluating, of_function, of_module, of_sentences, of_size, sha256_of

IMAGES = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
VECTORS = torch.arange(6.0).reshape(3, 2)


def network():
    """A small network with dropout and batch normalisation, in training mode."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.AdaptiveAvgPool2d(1)
    )


# -- what a network returns --------------------------------------------------------------------------------------------

READ_ONLY = VECTORS.numpy().copy()
READ_ONLY.flags.writeable = False
ACCEPTED = {
    "a tensor": VECTORS,
    "with a gradient": VECTORS.clone().requires_grad_(),
    "maps of one pixel": VECTORS[:, :, None, None],
    "an array": VECTORS.numpy(),
    "a read-only array": READ_ONLY,
    "an array from back to front": VECTORS.numpy()[:, ::-1].copy()[:, ::-1],
    "64 bits": VECTORS.double(),
    "16 bits": VECTORS.half(),
    "bfloat16": VECTORS.bfloat16(),
    "a list of tensors": list(VECTORS),
    "a list of arrays": list(VECTORS.numpy()),
    "a dictionary": {"last_hidden_state": torch.zeros(3, 5, 2), "pooler_output": VECTORS},
    "a dictionary of arrays": OrderedDict(pooler_output=VECTORS.numpy()),
    "an object": SimpleNamespace(pooler_output=VECTORS),
    "of sentence-transformers": {"token_embeddings": torch.zeros(3, 5, 2), "sentence_embedding": VECTORS},
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_vectors_are_found_in_what_a_network_returns(case):
    found = of_function(lambda batch: ACCEPTED[case])(IMAGES)
    assert torch.equal(found, VECTORS) and found.dtype == torch.float32 and not found.requires_grad


def raising(error):
    def embed(batch):
        raise error

    return embed


POOL = r"of 3 inputs, .* returns 3x4x2x2 numbers, not one vector each; pool them, for example with nn.Sequential\("
ONE_EACH = "numbers, not one vector each; it must return "
WRAP = "; wrap it in a function that returns a tensor of vectors"
REFUSED = {
    "maps": (torch.zeros(3, 4, 2, 2), POOL),
    "a token each": (torch.zeros(3, 1, 4), "returns 3x1x4 numbers, not one vector each; pool them"),
    "a scalar": (torch.tensor(1.0), f"of 3 inputs, .* returns 1 {ONE_EACH}"),
    "a number each": (torch.zeros(3), f"returns 3 {ONE_EACH}"),
    "vectors of no numbers": (torch.zeros(3, 0), f"returns 3x0 {ONE_EACH}"),
    "too few": (torch.zeros(2, 4), f"of 3 inputs, .* returns 2x4 {ONE_EACH}"),
    "no maps": (torch.zeros(0, 4, 4), "returns 0x4x4 numbers, not one vector each; pool them"),
    "NaN": (torch.full((3, 2), np.nan), "returns NaN or infinite values; check its input scale"),
    "infinite": (torch.full((3, 2), np.inf), "returns NaN or infinite values"),
    "beyond 32 bits": (torch.full((3, 2), 1e300, dtype=torch.float64), "returns NaN or infinite values"),
    "whole numbers": (torch.zeros(3, 2, dtype=torch.int64), "returns torch.int64; it must return floats"),
    "truth": (torch.zeros(3, 2) > 0, "returns torch.bool; it must return floats"),
    "complex": (torch.zeros(3, 2, dtype=torch.complex64), "returns torch.complex64; it must return floats"),
    "a tuple": ((VECTORS,), f"returns tuple{WRAP}"),
    "nothing": (None, f"returns NoneType{WRAP}"),
    "lists": (VECTORS.tolist(), f"returns list{WRAP}"),
    "a list of other lengths": ([torch.zeros(2), torch.zeros(3), torch.zeros(2)], f"returns list{WRAP}"),
    "objects": (np.array([None] * 3), f"returns ndarray{WRAP}"),
    "texts": (np.array(["a"] * 3), f"returns ndarray{WRAP}"),
    "a long double": (np.zeros((3, 2), np.longdouble), f"returns ndarray{WRAP}"),
    "sparse": (torch.zeros(3, 2).to_sparse(), f"returns Tensor{WRAP}"),
    "no storage": (torch.zeros(3, 2, device="meta"), f"returns Tensor{WRAP}"),
    "a dictionary without vectors": ({"last_hidden_state": torch.zeros(3, 5, 2)}, f"returns dict{WRAP}"),
    "a pooler that is off": (SimpleNamespace(pooler_output=None), f"returns SimpleNamespace{WRAP}"),
}
ERRORS = {
    "of shapes": (
        RuntimeError("shapes do not match\nmore lines"),
        r"failed on a batch of shape \(3, 3, 8, 8\): shapes do not match",
    ),
    "without words": (ValueError(), ": ValueError"),
    "of a key": (KeyError("weight"), ": 'weight'"),
    "of an index": (IndexError("list index out of range"), ": list index out of range"),
    "of an assertion": (AssertionError("square images only"), ": square images only"),
    "very long": (TypeError("x" * 5000), ": x+…"),
    "of ours": (InputError("say it as it is"), "^say it as it is"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_are_no_vectors_is_refused_in_a_sentence(case):
    made, sentence = REFUSED[case]
    with pytest.raises(InputError, match=sentence) as caught:
        of_function(lambda batch: made)(IMAGES)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize("case", ERRORS)
def test_whatever_a_network_raises_is_one_sentence(case):
    error, sentence = ERRORS[case]
    with pytest.raises(InputError, match=f"{sentence}$") as caught:
        of_function(raising(error))(IMAGES)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300
    with pytest.raises(KeyboardInterrupt):
        of_function(raising(KeyboardInterrupt()))(IMAGES)


# -- networks ----------------------------------------------------------------------------------------------------------


def test_a_network_is_asked_in_evaluation_mode_without_gradients_and_stays_as_it_was():
    net = network()
    net[3].eval()  # a part in another mode
    before, modes = copy.deepcopy(net.state_dict()), [part.training for part in net.modules()]
    embed = of_module(net)
    assert torch.equal(embed(IMAGES), embed(IMAGES))  # no dropout
    assert [part.training for part in net.modules()] == modes and modes.count(False) == 1
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in net.parameters())
    expected = net.eval()(IMAGES).flatten(1)
    torch.testing.assert_close(embed(IMAGES), expected)


def test_modes_come_back_after_an_error():
    net = nn.Sequential(nn.Dropout(), nn.Linear(5, 2))
    with pytest.raises(InputError, match="the feature extractor Sequential failed on a batch of shape"):
        of_module(net)(torch.zeros(3, 4))
    assert net.training and net[0].training
    with evaluating("not a module"):
        pass


class OfTimm(nn.Module):
    """A network that says, as those of timm do, which images it wants."""

    pretrained_cfg: ClassVar = {"input_size": (3, 24, 24), "mean": (0.5, 0.4, 0.3), "std": (0.5, 0.2, 0.1)}

    def forward(self, x):
        return x.mean((2, 3))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_network_of_timm_gets_the_size_the_scale_and_the_channels_that_it_wants(channels):
    embed = of_module(OfTimm())
    x = torch.full((2, channels, 24, 24), 0.6)
    torch.testing.assert_close(embed(x), torch.tensor([[0.2, 1.0, 3.0]] * 2))
    assert embed.size == 24 and embed.name == "OfTimm" and embed.inputs == "anything"
    torch.testing.assert_close(embed(torch.full((2, 7, 3, 3), 0.6)[:, :3]), torch.tensor([[0.2, 1.0, 3.0]] * 2))


@pytest.mark.parametrize("about", [None, {}, {"input_size": None}, "unknown", {"mean": (0.5,)}])
def test_a_network_that_says_nothing_gets_its_images_as_they_are(about):
    net = OfTimm()
    net.pretrained_cfg = about
    assert of_module(net).size == 0
    torch.testing.assert_close(of_module(net)(IMAGES), IMAGES.mean((2, 3)))


def test_a_network_of_texts_gets_a_list():
    class Lengths(nn.Module):
        def forward(self, texts):
            assert isinstance(texts, list)
            return torch.tensor([[float(len(text))] for text in texts])

    assert of_module(Lengths())(("a", "bcd")).tolist() == [[1], [3]]
    with pytest.raises(InputError, match="Lengths failed on texts: object of type 'int' has no len"):
        of_module(Lengths())([3])


def test_a_function_goes_by_its_name_alone():
    class Lengths:
        def __call__(self, texts):
            return np.array([[float(len(text))] for text in texts])

    assert of_function(Lengths()).name.endswith("Lengths") and of_function(Lengths())(["ab"]).tolist() == [[2]]
    found = of_function(of_size)
    assert (found.name, found.sha256, found.size) == ("of_size", "", 0)  # a script's own is found in a module later


def test_a_model_of_sentences_encodes_and_keeps_its_mode():
    class Sentences(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def encode(self, texts, *, convert_to_numpy, show_progress_bar):
            assert convert_to_numpy and not show_progress_bar and not self.training
            return np.array([[len(text) * self.scale.item()] for text in texts], np.float32)

    model = Sentences()
    embed = of_sentences(model)
    assert embed(["a", "bc"]).tolist() == [[1], [2]] and model.training and embed.inputs == "texts"
    assert embed.sha256 == sha256_of(model) and of_sentences(SimpleNamespace(encode=None)).sha256 == ""


# -- checksums ---------------------------------------------------------------------------------------------------------


def changes():
    def weight(net):
        net[0].weight.data[0, 0, 0, 0] += 0.125

    def in_place(net):
        with torch.no_grad():
            net[0].bias.add_(1)

    def replaced(net):
        net[0].bias = nn.Parameter(net[0].bias.detach().flip(0) * 2)

    def trained(net):
        net.train()(IMAGES)

    def counted(net):
        net[1].num_batches_tracked += 1

    def halved(net):
        net.bfloat16()

    def renamed(net):
        net.add_module("more", nn.Linear(1, 1))

    return (weight, in_place, replaced, trained, counted, halved, renamed)


@pytest.mark.parametrize("change", changes(), ids=lambda change: change.__name__)
def test_another_weight_or_buffer_gives_another_checksum(change):
    net = network()
    before = sha256_of(net)
    assert before == sha256_of(copy.deepcopy(net)) == sha256_of(net) and len(before) == 64
    change(net)
    now = sha256_of(net)
    assert now != before and now == sha256_of(copy.deepcopy(net))


def test_an_unchanged_network_is_not_read_again(monkeypatch):
    net = network()
    found = sha256_of(net)
    monkeypatch.setattr(module.hashlib, "sha256", lambda: pytest.fail("its weights are read again"))
    assert sha256_of(net) == found


def test_a_network_without_weights_or_with_odd_ones_has_a_checksum():
    odd = nn.Module()
    odd.register_buffer("none", torch.empty(0))
    odd.register_buffer("nan", torch.tensor(float("nan")))
    odd.register_buffer("bytes", torch.arange(3, dtype=torch.uint8))
    odd.register_buffer("strided", torch.arange(6.0).reshape(2, 3).T)
    assert sha256_of(odd) == sha256_of(odd) != sha256_of(nn.ReLU()) == sha256_of(nn.ReLU())


def test_a_network_with_lazy_layers_is_refused_until_they_have_weights():
    net = nn.Sequential(nn.Flatten(), nn.LazyLinear(5))
    with pytest.raises(InputError, match="Sequential has layers whose weights have no shape yet; run one batch thr"):
        of_module(net)
    net(IMAGES)
    assert of_module(net)(IMAGES).shape == (3, 5)


def test_images_are_floats_of_a_size():
    x = torch.full((2, 3, 9, 7), 255, dtype=torch.uint8)
    assert of_size(x, 0).shape == (2, 3, 9, 7) and of_size(x, 5).shape == (2, 3, 5, 5)
    assert of_size(x, 5).unique().tolist() == [1.0] and torch.equal(of_size(IMAGES, 8), IMAGES)
