"""The files of the C extension, and Python in a process of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import prer

PACKAGE = Path(prer.__file__).parent
VARIANTS = ["baseline", "avx2", "avx512"] if sysconfig.get_platform() == "linux-x86_64" else ["baseline"]
LIBRARIES = {f"prer/kernels/cpu/_{variant}{EXTENSION_SUFFIXES[0]}" for variant in VARIANTS}
SHORT = [
    "seeds=1",
    "learner.epochs=1",
    "learner.epochs_autoencoder=1",
    "learner.density.epochs=1",
    "learner.density.blocks=1",
]
MADE_BY = "from prer.kernels.registry import made_by; print(made_by('cpu'))"
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


def python(*arguments, cwd, package=PACKAGE.parent, **environment):
    """What Python prints in a process of its own, with the package from this folder."""
    known = {key: value for key, value in os.environ.items() if key not in ("PRER_KERNELS", "XDG_CACHE_HOME", "CC")}
    known |= {"PYTHONPATH": str(package)} | environment
    done = subprocess.run([sys.executable, "-W", "ignore", *arguments], cwd=cwd, env=known, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return done.stdout.decode().strip()
