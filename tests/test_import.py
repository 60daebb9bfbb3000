"""`import prer` alone is quick."""

from support.commands import printed


def test_every_public_name_is_listed_without_torch_and_can_be_imported():
    code = (
        "import sys, prer\n"
        "print(sorted(set(prer.__all__) - set(dir(prer))), 'torch' in sys.modules)\n"
        "print([name for name in dir(prer) if not hasattr(prer, name)])"
    )
    assert printed("-c", code).splitlines() == ["[] False", "[]"]
