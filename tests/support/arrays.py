"""Small arrays, and files of them."""

import numpy as np
import torch


def vectors(n, width=3):
    return np.arange(n * width, dtype=np.float32).reshape(n, width)


def images(n, *shape, dtype=np.uint8):
    return np.random.default_rng(0).integers(0, 2 if np.dtype(dtype).kind == "f" else 256, (n, *shape)).astype(dtype)


def write_vectors(path, seed):
    """Write four classes of vectors to an .npz; return the setting that reads it."""
    rng = np.random.default_rng(seed)
    np.savez(path, x=rng.normal(size=(40, 3)), y=np.repeat([0, 1, 2, 3], 10))
    return f"stream.data={path}"


def tensor_images(*shape, dtype=torch.uint8, seed=0):
    """Images of noise as a tensor: bytes, or floats from 0 to 1."""
    drawn = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(seed))
    return drawn.to(torch.uint8) if dtype == torch.uint8 else drawn / 255


X, Y = vectors(8), np.repeat([0, 1], 4)
IMAGES = images(8, 8, 8)
FOUR = np.repeat(np.arange(4), 3)
NAMES = np.array(["ant", "bee", "cat", "dog"])


def parts(task, seed=0):
    """The rows that a seed learns from, and those that it is tested on."""
    return task.train_rows([seed])[0].tolist(), task.test_rows([seed])[0].tolist()
