"""Methods that store samples, with as many of them as fit into the bytes of PRER's memory, on MNIST and CIFAR10.

    PRER_DATA=DATA python benchmarks/equal_bytes.py RUNS [--workers N] [--seeds N] [--only DATA,METHOD,...] [--quick]

All have the settings of `prer/presets/`, except for the size of their memory. Bytes are counted as the memory is stored, from
live learners: PRER's flow and decoder after five tasks, and the samples of each method with what it notes of them.
"""

from dataclasses import replace

import torch
from recorded_runs import QUICK, chosen, images, options_of, quickened, recorded, written

from prer.data.catalogue import CATALOGUE
from prer.nn.stacked import nbytes
from prer.paper import file_of
from prer.paper.published import TASKS
from prer.paper.table2 import of_five_tasks
from prer.runs.experiment import Experiment, tables_of
from prer.settings import merged
from prer.streams.stream import Stream

DATA = ("mnist", "cifar10")
METHODS = ("gem", "er", "lwf", "replay", "der")  # slow ones first
IN_ALL = ("replay", "der")  # whose size is that of all tasks together
FEW = 4  # samples of each class that are enough to count the bytes of one


def bytes_of_prer(data):
    """Bytes of PRER's memory after five tasks."""
    learner = of_five_tasks(Experiment.read(file_of(data, "prer")), CATALOGUE[data].shape)
    return nbytes(*learner.memory().values())


def memory_of(experiment, size, each):
    """The size of a learner's memory after five untrained tasks with `each` random samples of a class."""
    shape, generator = CATALOGUE[experiment.stream.data].shape, torch.Generator().manual_seed(0)
    y = torch.arange(2 * TASKS).repeat_interleave(each)
    x = torch.randint(1, 256, (len(y), *shape[1:], shape[0]), generator=generator, dtype=torch.uint8)
    learner = replace(experiment.learner, size=size, epochs=0)
    learner.start(shape, (0,))
    for task in Stream.split(x.squeeze(-1).numpy(), y.numpy()):
        learner.learn(task)
    return learner.memory_size()


def size_within(experiment, budget):
    """The largest `size` of a learner whose memory has at most these bytes after five tasks."""
    few = memory_of(experiment, FEW, FEW)
    samples = budget * few.samples // few.bytes
    return samples if experiment.learner.name in IN_ALL else samples // TASKS


def experiment(data, method, budget, seeds, source=None, quick=False):
    """The experiment of a method whose memory fits into this budget of bytes; `source` replaces its data."""
    file = file_of(data, method)
    size = size_within(Experiment.read(file), budget)
    about = {"name": f"{data}-{method}-equal-bytes", "seeds": seeds, "learner": {"size": size}}
    tables = merged(tables_of(file), about | ({"stream": {"data": str(source)}} if source else {}), {})
    return Experiment.parse(quickened(tables, quick), presets=False)


def main():
    options = options_of(__doc__, 20)
    experiments = []
    for method in chosen(options, METHODS):
        for data in reversed(chosen(options, DATA)):
            if not file_of(data, method).exists():
                print(
                    f"skipped: there are no settings for {method} on {data}, {file_of(data, method).name}", flush=True
                )
                continue
            source = written(options.runs / f"{data}-quick.npz", *images(data, QUICK)) if options.quick else None
            made = experiment(data, method, bytes_of_prer(data), options.seeds, source, options.quick)
            experiments.append(made)
            print(f"{made.name}: size {made.learner.size}", flush=True)
    recorded(experiments, options, "equal-bytes")


if __name__ == "__main__":
    main()
