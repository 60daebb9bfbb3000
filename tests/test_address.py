"""Randomness with an address: the same place gives the same numbers, whoever else draws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.address import Address, as_device, as_seeds
from prer.errors import InputError
from prer.nn.networks import Encoder
from prer.nn.stacked import stack

FIVE, SIX = Address(tuple(range(5))) / "here", Address(tuple(range(6))) / "here"

DRAWS = {
    "normal": lambda address: address.normal(4, 3),
    "uniform": lambda address: address.uniform(4, 3),
    "permutation": lambda address: address.permutation(40),
    "weights": lambda address: stack(lambda: Encoder((1, 8, 8), 5, (2, 3, 4), ()), address).layers[-1].weight.detach(),
}
every_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())


@every_draw
def test_same_place_gives_same_numbers_whatever_was_drawn_before(draw):
    first = draw(FIVE)
    torch.randn(7)
    draw(FIVE / "elsewhere")
    assert torch.equal(draw(Address(FIVE.seeds) / "here"), first)


@every_draw
def test_places_and_seeds_differ(draw):
    places = [FIVE, FIVE / 0, FIVE / 1, FIVE / 1 / 0, FIVE / 10, FIVE / "0" / "1", Address(FIVE.seeds)]
    rows = torch.cat([draw(place) for place in places]).flatten(1)
    assert len(rows.unique(dim=0)) == len(places) * len(FIVE.seeds)


@every_draw
def test_a_sixth_seed_changes_nothing_for_the_first_five(draw):
    assert torch.equal(draw(SIX)[:5], draw(FIVE))


@every_draw
def test_a_seed_draws_the_same_wherever_it_stands(draw):
    assert torch.equal(draw(Address((4, 2), place=FIVE.place)), draw(FIVE)[[4, 2]])


def test_parts_of_a_place_are_read_as_text():
    assert FIVE / 3 == FIVE / "3"
    assert (FIVE / 3).place == ("here", "3")


def test_streams_are_what_they_were():
    assert list(Address((0, 1, 7)).streams()) == [3456079177858693020, 3874038210105081456, 4359823973405836615]
    place = Address((0, 1, 7)) / "task 3" / "flow" / 2
    assert list(place.streams()) == [4050804424205531507, 6038410767241344706, 69617907631628192]


def test_permutations_are_what_they_were():
    assert (Address((0, 1, 7)) / "order").permutation(8).tolist() == [
        [5, 2, 3, 4, 1, 6, 7, 0],
        [4, 0, 1, 7, 3, 6, 5, 2],
        [7, 6, 4, 5, 3, 0, 2, 1],
    ]


@given(n=st.integers(0, 300), seeds=st.sets(st.integers(0, 10**12), min_size=1, max_size=4), place=st.text(max_size=20))
@settings(derandomize=True, database=None, deadline=None, max_examples=60)
def test_permutation_is_a_permutation(n, seeds, place):
    order = (Address(tuple(seeds)) / place).permutation(n)
    assert order.shape == (len(seeds), n)
    assert torch.equal(order.sort().values, torch.arange(n).expand(len(seeds), n))


def test_permutations_favour_no_position():
    first = Address(tuple(range(600))).permutation(3)[:, 0]
    assert (first.bincount(minlength=3) - 200).abs().max() < 50  # 4.3 standard deviations


def test_normal_and_uniform_have_their_moments():
    normal, uniform = Address((0, 1)).normal(20_000), Address((0, 1)).uniform(20_000)
    assert normal.shape == uniform.shape == (2, 20_000)
    torch.testing.assert_close(normal.mean(1), torch.zeros(2), atol=0.03, rtol=0)
    torch.testing.assert_close(normal.std(1), torch.ones(2), atol=0.03, rtol=0)
    torch.testing.assert_close(uniform.mean(1), torch.full((2,), 0.5), atol=0.01, rtol=0)
    torch.testing.assert_close(uniform.std(1), torch.full((2,), 12**-0.5), atol=0.01, rtol=0)
    assert uniform.min() >= 0 and uniform.max() < 1


@pytest.mark.parametrize(
    ("given_seeds", "seeds"), [(1, (0,)), (3, (0, 1, 2)), ([4, 0, 2], (4, 0, 2)), (range(2), (0, 1)), (iter([5]), (5,))]
)
def test_seeds_are_a_number_or_themselves(given_seeds, seeds):
    assert as_seeds(given_seeds) == seeds


@pytest.mark.parametrize("seeds", [0, -1, [], [1, 1], [0, -2]])
def test_seeds_that_cannot_be_are_refused(seeds):
    with pytest.raises(InputError, match="seeds="):
        as_seeds(seeds)


def test_auto_device_is_the_gpu_where_there_is_one(monkeypatch):
    assert as_device("cpu") == "cpu"
    for there, device in [(True, "cuda"), (False, "cpu")]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert as_device("auto") == device


@pytest.mark.parametrize("device", ["gpu", "", "cuda:99", "cpu:x"])
def test_a_device_that_is_not_there_is_refused_with_what_is(device):
    with pytest.raises(InputError, match=r"this machine has cpu.*'auto'"):
        as_device(device)
