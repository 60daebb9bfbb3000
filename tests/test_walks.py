"""The two paths in CONTRIBUTING.md list exactly the files that samples pass, and functions that are called."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from prer import PRER, Naive, learn
from prer.streams.config import StreamConfig

ROOT = Path(__file__).parents[1]
WALKS = re.findall(r"\n\n((?:\d+\. `.*\n)+)", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
MOST = 15, 6  # files
# Files that are called on the way, and why they are no part of it.
HELPERS = {
    "address.py": "random numbers",
    "settings.py": "checks of settings",
    "data/columns.py": "names of columns",
    "data/tables.py": "texts and missing values, which this table does not have",
    "data/reading.py": "how the data is read, which the model keeps",
    "models/model.py": "what was learned, for the user of the result",
    "training/fading.py": "the health of classes, which this learner does not report",
    "data/guards.py": "bounds on the size of files",
    "data/formats/cifar.py": "asked whether the file is of its format",
    "data/formats/idx.py": "asked whether the file is of its format",
    "streams/transforms.py": "no transform: the samples stay as they are",
    "presets/auto.py": "the numbers of epochs and samples",
    "nn/stacked.py": "layers, as those of torch",
    "learners/encoding.py": "builds the encoder",
    "learners/memory.py": "an empty memory is counted",
    "learners/interfaces.py": "the size of that memory",
    "training/computing.py": "the number of threads and the size of batches for inference",
    "training/phase.py": "checks that weights are finite",
}
OF_A_PSEUDO_SAMPLE = HELPERS | {
    "learners/base.py": "passes on what phase 1 trains",
    "learners/health.py": "checks that samples are finite",
    "learners/labelling.py": "what the decoder's phase sees of labels: nothing",
    "nn/heads.py": "noise for the dropout of heads",
    "streams/task.py": "the new samples beside it",
    "training/optimisers.py": "the update, after the gradient",
}


def listed(walk):
    """Of each step its file and the names of its functions, without their classes."""
    for line in walk.splitlines():
        file, *functions = re.findall(r"`([^`]+)`", line.partition(":")[0])
        yield file, [name.rpartition(".")[2] for name in functions]


def called(work):
    """The functions of the package that are called, by file."""
    found = {}

    def note(frame, event, _):
        _, inside, file = frame.f_code.co_filename.partition("/prer/")
        if event == "call" and inside:
            found.setdefault(file, set()).add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {file.rpartition("prer/")[2]: names for file, names in found.items()}


def check(steps, found, helpers):
    """Every listed function is called, and every called file is listed or a helper."""
    assert [(file, name) for file, names in steps for name in names if name not in found.get(file, ())] == []
    listed_files = [file for file, _ in steps]
    assert len(set(listed_files)) == len(listed_files) and not set(listed_files) & helpers.keys()
    assert found.keys() - set(listed_files) <= helpers.keys()


@pytest.fixture
def table(tmp_path):
    rng, lines = np.random.default_rng(0), ["a,b,kind"]
    lines += [f"{rng.normal() + k:.3f},{rng.normal() - k:.3f},{'wxyz'[k]}" for k in range(4) for _ in range(20)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "table.csv")


def test_a_batch_goes_from_a_file_to_a_cell_of_the_matrix(table):
    steps = list(listed(WALKS[0]))
    found = called(lambda: learn(StreamConfig(data=table).build(), Naive(epochs=1), seeds=1, device="cpu", warned=True))
    assert len(steps) <= MOST[0]
    check(steps, found, HELPERS)


def test_a_pseudo_sample_goes_from_the_flow_to_the_encoder(table):
    first, second = StreamConfig(data=table).build()
    learner = PRER(epochs=1, epochs_autoencoder=1, density={"epochs": 1, "blocks": 2})
    learner.start(first.x.shape[1:], (0,))
    learner.learn(first)
    learner.meet(second)
    steps, past = list(listed(WALKS[1])), learner.freeze()
    found = called(lambda: learner.train_autoencoder(second, past))
    assert len(steps) <= MOST[1]
    check(steps, found, OF_A_PSEUDO_SAMPLE)
