"""benchmarks/equal_bytes.py: as many samples as fit into PRER's bytes, and not one more."""

import pytest
from support.benchmarks import script

from prer.paper import file_of
from prer.runs.experiment import Experiment

equal_bytes = script("equal_bytes")


def test_the_bytes_of_prer_are_those_of_its_recorded_runs(recorded):
    _, found = recorded
    for data in equal_bytes.DATA:
        result = found["table2"][data, "prer"].folder.result
        per_float = equal_bytes.bytes_of_prer(data) / result["memory_floats"][-1]
        assert 4 <= per_float < 4.1  # hardly any integers; these runs did not count bytes
        assert f"{equal_bytes.bytes_of_prer(data) / 1000:,.0f}" == {"mnist": "517", "cifar10": "4,924"}[data]


@pytest.mark.parametrize("data", equal_bytes.DATA)
@pytest.mark.parametrize("method", equal_bytes.METHODS)
def test_one_more_sample_would_not_fit_into_the_bytes_of_prer(data, method):
    if not file_of(data, method).exists():
        pytest.skip(f"{file_of(data, method).name} does not exist yet")
    budget = equal_bytes.bytes_of_prer(data)
    learner = equal_bytes.experiment(data, method, budget, 2).learner
    assert learner == Experiment.read(file_of(data, method), [f"learner.size={learner.size}"]).learner
    in_all = method in equal_bytes.IN_ALL
    each = learner.size // (5 if in_all else 1) + 2  # more than enough, though a fifth is for tests
    size, more = (equal_bytes.memory_of(learner_of(data, method), learner.size + n, each) for n in (0, 1))
    assert size.bytes <= budget < more.bytes
    assert size.samples == learner.size * (1 if in_all else 5)


def learner_of(data, method):
    return Experiment.read(file_of(data, method))


def test_a_quick_run_has_its_own_data_and_the_same_size():
    full = equal_bytes.experiment("mnist", "lwf", 500_000, 20)
    quick = equal_bytes.experiment("mnist", "lwf", 500_000, 2, "some/images.npz", True)
    assert full.stream.data == "mnist" and full.stream.resplit == 0.2 and len(full.seeds) == 20
    assert quick.stream.data == "some/images.npz" and quick.learner.epochs == 1 and quick.device == "cpu"
    assert quick.learner.size == full.learner.size == 500_000 // (28 * 28 + 8 + 2 * 4) // 5
