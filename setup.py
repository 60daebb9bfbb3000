"""The optional C extension; everything else about the package is in pyproject.toml.

The same sources are built once for each set of instructions, and `prer/kernels/cpu/library.py` opens the library that
fits the processor. They are plain shared libraries without Python's headers. Without a compiler, or with one that does
not know our C (GCC's vectors), the package is installed without them, and torch computes everything.
"""

import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = Path("prer/kernels/cpu")
# What is not finite must stay so, hence no -ffast-math; the two -fno flags change no result.
FLAGS = ["-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
VARIANTS = {"baseline": []}
if sysconfig.get_platform().endswith(("x86_64", "amd64")):
    # What torch asks of a processor that it calls AVX2 or AVX512.
    VARIANTS["avx2"] = ["-mavx2", "-mfma"]
    VARIANTS["avx512"] = [*VARIANTS["avx2"], "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]


class OneByOne(build_ext):
    """Builds one variant after another, since their object files have the same names."""

    def finalize_options(self) -> None:
        """Undo what `--parallel` asks for."""
        super().finalize_options()
        self.parallel = None


setup(
    ext_modules=[
        Extension(
            f"prer.kernels.cpu._{variant}",
            sources=[str(KERNELS / name) for name in ("flow.c", "convolution.c")],
            depends=[str(KERNELS / "products.h")],
            extra_compile_args=[*FLAGS, *flags],
            libraries=["m"],
            optional=True,
        )
        for variant, flags in VARIANTS.items()
    ],
    cmdclass={"build_ext": OneByOne},
)
