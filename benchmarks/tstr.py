"""Compare sampled with real embeddings: train on samples, test on real embeddings (TSTR).

    python benchmarks/tstr.py MNIST.npz [--device auto] [--seeds 5] [--epochs 60] [--json FILE]

The autoencoder and the flow learn the 60,000 training images as one task of ten classes. A classifier is then trained on
real embeddings, another one on as many sampled ones, and both are tested on the real embeddings of the 10,000 test images.
Unlike the likelihood, this shows whether the flow ignores the class.
"""

import argparse
import json
import platform
import time

import numpy as np
import torch
from torch import Tensor

from prer.address import Address, as_device
from prer.densities.flow import FlowSettings
from prer.densities.gaussian import GaussianSettings
from prer.learners import PRER
from prer.learners.base import mean_cross_entropy
from prer.nn.stacked import Linear, stack
from prer.streams.config import load
from prer.streams.stream import Stream


def classifier_accuracy(z: Tensor, y: Tensor, z_test: Tensor, y_test: Tensor, address: Address) -> list[float]:
    """Test accuracy in per cent of a small classifier trained on (z, y), for each seed."""
    std, mean = torch.std_mean(z, dim=1, keepdim=True)
    size, width = z.shape[2], 128
    net = stack(lambda: torch.nn.Sequential(Linear(size, width), torch.nn.ReLU(), Linear(width, 10)), address / "net")
    optimiser = torch.optim.Adam(net.parameters(), 1e-3)
    where = torch.arange(len(z), device=z.device).unsqueeze(1)
    for epoch in range(10):
        for rows in (address / epoch).permutation(z.shape[1]).split(256, dim=1):
            loss = mean_cross_entropy(net((z[where, rows] - mean) / std), y.gather(1, rows))
            optimiser.zero_grad()
            loss.sum().backward()
            optimiser.step()
    with torch.no_grad():
        return (100 * (net((z_test - mean) / std).argmax(-1) == y_test).float().mean(1)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=256, help="of the flow's training")
    parser.add_argument("--lr", type=float, default=6e-3)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--json")
    options = parser.parse_args()
    device = as_device(options.device)
    stream = Stream.split(load(options.data), classes_per_task=10).to(device)
    learner = PRER()
    learner.start(stream.shape, range(options.seeds), device)
    task, address = stream[0], learner.address_ / "tstr"
    learner.meet(task)
    learner.train_autoencoder(task, None)
    rows, held = task.train_rows(address.seeds), task.test_rows(address.seeds)
    z, y, z_test, y_test = learner.embed(task, rows), task.y[rows], learner.embed(task, held), task.y[held]
    results, seconds = {"real": classifier_accuracy(z, y, z_test, y_test, address)}, {}
    learner.batch = options.batch
    densities = {"flow": FlowSettings(lr=options.lr, epochs=options.epochs), "gaussian": GaussianSettings()}
    for density, learner.density in densities.items():
        begin = time.perf_counter()
        learner.density_ = learner.new_density()
        learner.train_density(task, None)
        seconds[density] = round(time.perf_counter() - begin, 1)
        y_hat = learner.density_.labels(rows.shape[1], address / "labels", range(10))
        z_hat = learner.density_.sample(y_hat, address / "sample")
        results[density] = classifier_accuracy(z_hat, y_hat, z_test, y_test, address)
    for name, values in results.items():
        print(
            f"trained on {name:9s} {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f} % of {held.shape[1]} test images"
        )
    if options.json:
        hardware = torch.cuda.get_device_name() if device == "cuda" else platform.machine()
        record = {"hardware": hardware, "torch": torch.__version__, "options": vars(options), "seconds": seconds}
        with open(options.json, "w") as file:
            json.dump(record | {"test images": held.shape[1], "accuracy": results}, file, indent=1)


if __name__ == "__main__":
    main()
