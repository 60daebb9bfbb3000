"""The variants of the C extension."""

import pytest
import torch

from prer.kernels.cpu import library

PROCESSORS = ["DEFAULT", "AVX2", "AVX512"]  # each supports what those before it support


@pytest.fixture(scope="module", params=PROCESSORS)
def variant(request):
    """Opens the library for another processor, unless this one does not support it."""
    here = torch.backends.cpu.get_cpu_capability()
    if here not in PROCESSORS[PROCESSORS.index(request.param) :]:
        pytest.skip(f"this processor is {here}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: request.param)
        library.loaded.cache_clear()
        yield
    library.loaded.cache_clear()
