"""Hostile data files on the command line: one sentence, exit code 2, and no run."""

import re

import pytest
from support.hostile_files import HOSTILE

from prer.cli.main import main

pytestmark = pytest.mark.usefixtures("little_memory")
NAMED = [
    *("truncated idx", "an idx that claims 2^40", "gzip bomb", "fewer labels than images", "tar bomb", "mat bomb"),
    *("pickle in an npz", "npz whose header lies", "zip slip", "zip bomb", "encrypted zip", "zip with wrong UTF-8"),
    *("images of mixed sizes", "broken image", "image bomb", "symlink loop", "missing value", "text in a feature"),
    *("FIFO", "device", "pickle", "torch file", "empty file", "empty folder", "random bytes"),
]


@pytest.mark.parametrize("case", NAMED)
def test_a_hostile_file_ends_in_one_line_and_leaves_no_run(tmp_path, case, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, said = HOSTILE[case]
    make(tmp_path / "data")
    with pytest.raises(SystemExit) as caught:
        main(["run", "stream.data=data", "--seeds", "1"])
    output = capsys.readouterr()
    assert re.search(said, output.err)
    assert caught.value.code == 2
    assert output.err.count("\n") == 1
    assert "Traceback" not in output.err
    assert "data" in output.err
    assert not (tmp_path / "runs").exists()
