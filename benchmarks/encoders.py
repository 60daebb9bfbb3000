"""Encoders of a first lesson that then rest, densities, and answers: the comparison behind PRER's default without the task.

    python benchmarks/encoders.py JOBS.jsonl FOLDER [--out FILE]

A job is a line: the data ("mnist": FOLDER/mnist.npz, with uint8 images x, xv [n, C, H, W] and labels y, yv; the part v is
held out of the training part), the encoder ("ae", "pca", "patches") with its options (`how`), the sizes of the embedding
(`dims`), and the densities (`mix`: components, 0 for those that held-out likelihood chooses, and shrinkage; 1e9 ties all
covariances). The encoder is fitted on the classes `first`, by default 0 and 1. For each size and density the output has
the accuracy on the held-out part over all ten classes: by likelihood, by a head on samples, and by both, the likelihood
times 0.03, 0.1, 0.3, 1, and 5 and 20 / size (`cal`). "lda" and "ceiling" use the real embeddings of all classes.
`records/encoders_*_h200.jsonl` are such outputs; their lines are jobs, too.

This prototype came before the package's own encoders and densities, which have the constants that won.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GREY, COLOUR = (12, 24, 48), (24, 48, 96)  # filters of the paper's autoencoder
NETWORK = {"mnist": (GREY, 50), "kmnist": (GREY, 50), "svhn": (COLOUR, 100), "cifar10": (COLOUR, 200)}
MIX = [(1, 0), (4, 0.3), (16, 0.3), (16, 1e9)]
JOB = ("data", "encoder", "how", "dims", "mix", "steps", "first", "scale")


# -- encoders: functions of images in [0, 1] --------------------------------------------------------------------------


def embedded(encode, x, size=1000):
    with torch.no_grad():
        return torch.cat([encode(part.float() / 255) for part in x.split(size)])


def projected(features, x, most=256, scale=False):
    """The principal components of features, after scaling them if asked."""
    h = embedded(features, x[torch.randperm(len(x), device=DEVICE)[:12000]])
    mean, std = h.mean(0), h.std(0)
    std = std.clamp_min(std.max() * 1e-3 + 1e-8) if scale else torch.ones_like(std)
    h = ((h - mean) / std).double()
    directions = torch.linalg.svd(h.T @ h / len(h))[2][:most].float().T
    return lambda images: ((features(images) - mean) / std) @ directions


def k_means(x, count, rounds=12):
    centres = x[torch.randperm(len(x), device=DEVICE)[:count]].clone()
    for _ in range(rounds):
        own = torch.cat([(part @ centres.T - 0.5 * centres.square().sum(1)).argmax(1) for part in x.split(20000)])
        n = torch.zeros(len(centres), device=DEVICE).index_add_(0, own, torch.ones(len(x), device=DEVICE))
        sums = torch.zeros_like(centres).index_add_(0, own, x)
        other = x[torch.randint(len(x), (len(centres),), device=DEVICE)]
        centres = torch.where(n[:, None] > 0, sums / n.clamp_min(1)[:, None], other)
    return centres


def patches(x, K=400, size=6, pool=2, act="triangle", eps=0.1, contrast=0.04, root=False, alpha=0.25):
    """Responses to the centres of whitened patches (Coates, Lee and Ng 2011), pooled in a grid."""

    def normal(p):
        return (p - p.mean(-1, keepdim=True)) / (p.var(-1, keepdim=True) + contrast**2).sqrt()

    chosen = x[torch.randperm(len(x), device=DEVICE)[:8000]].float() / 255
    every = F.unfold(chosen, size).transpose(1, 2).flatten(0, 1)
    every = every[torch.randperm(len(every), device=DEVICE)[:200000]]
    every = normal(every[every.std(1) > 0.02])
    mean = every.mean(0)
    values, vectors = torch.linalg.eigh((every - mean).T.double() @ (every - mean).double() / len(every))
    whitening = (vectors @ torch.diag((values + eps).rsqrt()) @ vectors.T).float()
    centres = k_means((every - mean) @ whitening, K)
    if act == "soft":
        centres = centres / centres.norm(dim=1, keepdim=True).clamp_min(1e-6)

    def features(images):
        u = (normal(F.unfold(images, size).transpose(1, 2)) - mean) @ whitening
        if act == "triangle":
            square = u.square().sum(-1, keepdim=True) - 2 * u @ centres.T + centres.square().sum(1)
            distance = square.clamp_min(0).sqrt()
            a = (distance.mean(-1, keepdim=True) - distance).relu()
        else:
            u = u @ centres.T
            a = torch.cat([(u - alpha).relu(), (-u - alpha).relu()], -1)
        maps = a.transpose(1, 2).unflatten(2, [side - size + 1 for side in images.shape[2:]])
        a = F.adaptive_avg_pool2d(maps, pool).flatten(1)
        return a.sqrt() if root else a

    return features


class Autoencoder(nn.Module):
    """The paper's: convolutions with stride 2, and their mirror image."""

    def __init__(self, shape, channels, size):
        super().__init__()
        paddings, sides = [1, 2, 1] if shape[1] == 28 else [1, 1, 1], [shape[1]]
        widths, layers, up = [shape[0], *channels], [], []
        for a, b, p in zip(widths, channels, paddings, strict=False):
            layers += [nn.Conv2d(a, b, 4, 2, p), nn.ReLU()]
            missing = sides[-1] - ((sides[-1] + 2 * p - 4) // 2 * 2 - 2 * p + 4)
            up.insert(0, nn.Sequential(nn.ConvTranspose2d(b, a, 4, 2, p, missing), nn.ReLU() if up else nn.Sigmoid()))
            sides.append((sides[-1] + 2 * p - 4) // 2 + 1)
        self.maps = (channels[-1], sides[-1], sides[-1])
        flat = channels[-1] * sides[-1] ** 2
        self.encode = nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, size))
        self.decode = nn.Sequential(nn.Linear(size, flat), nn.ReLU(), nn.Unflatten(1, self.maps), *up)


def shifted(x, flip, most):
    """Images moved by up to `most` pixels, and mirrored at random if asked."""
    n, C, H, W = x.shape
    if flip:
        x = torch.where((torch.rand(n, device=DEVICE) < 0.5)[:, None, None, None], x.flip(3), x)
    x = F.pad(x, (most,) * 4, mode="reflect")
    down, right = torch.randint(0, 2 * most + 1, (2, n), device=DEVICE)
    rows = (down[:, None] + torch.arange(H, device=DEVICE))[:, None, :, None]
    columns = (right[:, None] + torch.arange(W, device=DEVICE))[:, None, None, :]
    at = torch.arange(n, device=DEVICE)[:, None, None, None], torch.arange(C, device=DEVICE)[None, :, None, None]
    return x[(*at, rows, columns)]


def strongly_changed(x, flip):
    """Images for self-supervision: moved, and with other brightness, contrast and colour."""
    x, n = shifted(x, flip, 6), len(x)
    if x.shape[1] == 1:
        return x * (0.7 + 0.6 * torch.rand(n, 1, 1, 1, device=DEVICE)) + 0.1 * torch.randn_like(x)
    gain, shift = 0.6 + 0.8 * torch.rand(n, 3, 1, 1, device=DEVICE), 0.2 * torch.randn(n, 3, 1, 1, device=DEVICE)
    grey = (torch.rand(n, 1, 1, 1, device=DEVICE) < 0.2).float()
    x = x * gain + shift
    return grey * x.mean(1, keepdim=True) + (1 - grey) * x


def vicreg(a, b):
    """The loss of VICReg (Bardes, Ponce and LeCun 2022) on two views."""
    total = 25 * (a - b).square().mean()
    for z in (a, b):
        covariance = z.T.cov()
        spread = (covariance.diagonal() + 1e-4).sqrt()
        off = covariance - torch.diag(covariance.diagonal())
        total = total + 25 * (1 - spread).relu().mean() + off.square().sum() / z.shape[1]
    return total


def autoencoder(x, data, wide=1, aug=False, noise=0.0, ssl=None, steps=4000, sparsity=0.02):
    channels, size = NETWORK[data]
    net = Autoencoder(x.shape[1:], [c * wide for c in channels], size).to(DEVICE)
    optimiser, flip = torch.optim.Adam(net.parameters(), 1e-3), data == "cifar10"
    for step in range(steps):
        slow_down(optimiser, 1e-3, step / steps)
        batch = x[torch.randint(len(x), (256 if ssl else 128,), device=DEVICE)].float() / 255
        batch = shifted(batch, flip, 4) if aug else batch
        if ssl:
            loss = vicreg(*(net.encode(strongly_changed(batch, flip)) for _ in range(2)))
            if ssl == "both":
                drawn = net.decode(net.encode(batch))
                loss = 0.2 * loss + (batch - drawn).square().flatten(1).sum(1).mean()
        else:
            z = net.encode(batch * (torch.rand_like(batch[:, :1]) > noise) if noise else batch)
            loss = (batch - net.decode(z)).square().flatten(1).sum(1).mean() + sparsity * z.abs().sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net.eval().encode


def slow_down(optimiser, rate, done):
    """A constant rate that falls to 0 in the second half."""
    for group in optimiser.param_groups:
        group["lr"] = rate * min(1, 2 * (1 - done))


# -- densities --------------------------------------------------------------------------------------------------------


def mixture(z, K, nu, rounds=25):
    """Means, Cholesky factors and log-weights of K Gaussians."""
    n, D = z.shape
    K = max(1, min(K, n // 20))
    ridge = 1e-3 * z.var(0, correction=0).mean() * torch.eye(D, device=DEVICE)
    centres = k_means(z, K, 15)
    member = F.one_hot((z @ centres.T - 0.5 * centres.square().sum(1)).argmax(1), K).float()
    for last in [*[False] * (rounds - 1), True] if K > 1 else [True]:
        N = member.sum(0) + 1e-6
        centres = (member.T @ z) / N[:, None]
        sums = torch.stack([((z - c) * m[:, None]).T @ (z - c) for c, m in zip(centres, member.T, strict=True)])
        pooled = sums.sum(0) / n
        shrunk = (sums + nu * D * pooled) / (N + nu * D)[:, None, None] if nu < 1e6 else pooled.expand(K, D, D)
        L = torch.linalg.cholesky((shrunk + ridge).double()).float()
        fit = centres, L, (N / n).log()
        if not last:
            member = log_densities(z, fit).softmax(1)
    return fit


def log_densities(z, fit):
    """Log-density and log-weight of each component [n, K]."""
    found = []
    for centre, L, weight in zip(*fit, strict=True):
        u = torch.linalg.solve_triangular(L, (z - centre).T, upper=False)
        found.append(-0.5 * u.square().sum(0) - L.diagonal().log().sum() + weight)
    return torch.stack(found, 1)


def chosen(z, nu):
    """A mixture with the number of components that makes held-out samples likeliest, and this number."""
    held, best = torch.arange(len(z), device=DEVICE) % 5 == 0, (-float("inf"), 1)
    for K in (1, 2, 4, 8, 16, 32):
        if K > 1 and len(z) / K < 20:
            break
        likelihood = float(log_densities(z[held], mixture(z[~held], K, nu)).logsumexp(1).mean())
        if likelihood <= best[0]:
            break
        best = likelihood, K
    return mixture(z, best[1], nu), best[1]


def drawn(fit, n):
    """Samples of a mixture."""
    centres, L, weights = fit
    own, z = torch.multinomial(weights.exp(), n, replacement=True), torch.randn(n, centres.shape[1], device=DEVICE)
    for k, (centre, factor) in enumerate(zip(centres, L, strict=True)):
        z[own == k] = centre + z[own == k] @ factor.T
    return z


# -- answers ----------------------------------------------------------------------------------------------------------


def head(draw, steps, mean, std, classes=10, rate=2e-3):
    """A classifier that is trained on what `draw` returns."""
    wide = [nn.Linear(len(mean), 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(0.2)]
    net = nn.Sequential(*wide, nn.Linear(512, classes)).to(DEVICE)
    optimiser = torch.optim.Adam(net.parameters(), rate)
    for step in range(steps):
        slow_down(optimiser, rate, step / steps)
        z, y = draw()
        loss = F.cross_entropy(net((z - mean) / std), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    net.eval()
    return lambda z: net((z - mean) / std).detach()


def from_memory(bank, newest):
    """Batches of samples of all classes, with real embeddings of the newest ones."""
    y = torch.randint(10, (512,), device=DEVICE)
    z = bank[y, torch.randint(bank.shape[1], (512,), device=DEVICE)]
    for c, real in newest.items():
        z = torch.where((y == c)[:, None], real[torch.randint(len(real), (512,), device=DEVICE)], z)
    return z, y


def discriminant(z, y, held):
    """Scores by one covariance for all classes."""
    means = torch.stack([z[y == c].mean(0) for c in range(10)])
    within = sum((z[y == c] - means[c]).T @ (z[y == c] - means[c]) for c in range(10)) / len(z)
    ridge = 1e-4 * within.diagonal().mean() * torch.eye(z.shape[1], device=DEVICE)
    P = torch.linalg.inv((within + ridge).double()).float()
    return held @ P @ means.T - 0.5 * (means @ P * means).sum(1)


def figures(job, folder):
    """Yield the figures of a job."""
    torch.manual_seed(0)
    with np.load(folder / f"{job['data']}.npz") as arrays:
        x, y, xv, yv = (torch.from_numpy(arrays[name]).to(DEVICE) for name in ("x", "y", "xv", "yv"))
    first = x[torch.isin(y, torch.tensor(job.get("first", [0, 1]), device=DEVICE))]
    how = job.get("how", {})
    if job["encoder"] == "ae":
        encode = autoencoder(first, job["data"], **how)
    elif job["encoder"] == "pca":
        encode = projected(lambda images: images.flatten(1), first)
    else:
        encode = projected(patches(first, **how), first, scale=job.get("scale", True))
    every, held = embedded(encode, x), embedded(encode, xv)

    def right(scores):
        return round(100 * float((scores.argmax(1) == yv).float().mean()), 2)

    for D in job.get("dims", [every.shape[1]]):
        z, zv, steps = every[:, :D], held[:, :D], job.get("steps", 3000)
        scale = z.mean(0), z.std(0) + 1e-6
        yield {"D": D, "what": "lda", "acc": right(discriminant(z, y, zv))}
        yield {"D": D, "what": "ceiling", "acc": right(head(lambda z=z: of_batch(z, y), steps, *scale)(zv))}
        for K, nu in job.get("mix", MIX):
            of_class = [z[y == c] for c in range(10)]
            if K:
                fits = [mixture(own, K, nu) for own in of_class]
            else:
                fits, numbers = zip(*(chosen(own, nu) for own in of_class), strict=True)
                yield {"D": D, "what": "chosen", "K": list(numbers), "nu": nu, "acc": 0}
            likelihood = torch.stack([log_densities(zv, fit).logsumexp(1) for fit in fits], 1)
            yield {"D": D, "what": "likelihood", "K": K, "nu": nu, "acc": right(likelihood)}
            bank, newest = torch.stack([drawn(fit, 20000) for fit in fits]), {c: of_class[c] for c in (8, 9)}
            said = head(lambda bank=bank, newest=newest: from_memory(bank, newest), steps, *scale)(zv).log_softmax(1)
            both = [right(said + (t * likelihood).log_softmax(1)) for t in (0.03, 0.1, 0.3, 1)]
            cal = [right(said + (t / D * likelihood).log_softmax(1)) for t in (5, 20)]
            yield {"D": D, "what": "head", "K": K, "nu": nu, "acc": right(said), "both": both, "cal": cal}


def of_batch(z, y):
    at = torch.randint(len(z), (512,), device=DEVICE)
    return z[at], y[at]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("encoders.jsonl"))
    asked = parser.parse_args()
    lines = map(json.loads, asked.jobs.read_text("utf-8").splitlines())
    jobs = {json.dumps(job): job for job in ({key: line[key] for key in JOB if key in line} for line in lines)}
    for job in jobs.values():
        begin = time.perf_counter()
        for found in figures(job, asked.folder):
            line = json.dumps(job | found | {"s": round(time.perf_counter() - begin, 1)})
            with asked.out.open("a") as out:
                out.write(line + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
