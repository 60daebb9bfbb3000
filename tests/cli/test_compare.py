"""prer compare: methods on a user's own table."""

import re

from support.commands import refused, said
from support.tables import table

FAST = ("--method", "ncm", "--method", "slda", "--seeds", "2")


def test_methods_are_compared_and_one_is_recommended(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("pets.csv", index=False)
    out = said(capsys, "compare", "pets.csv", "stream.label=kind", *FAST)
    assert "2 tasks: ant bee | cat dog" in out
    assert re.search(r"│ ncm +│ 100.0 ± 0.0 │ .*bytes │ +0 │ +0\.\d │", out)
    assert "Take ncm: 100.0 % correct after the last lesson; it keeps" in out  # slda is as good, and keeps more
    assert out.endswith("Make the model:  prer teach MODEL pets.csv stream.label=kind learner.name=ncm\n")
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_lessons_can_be_chosen_and_settings_of_learners_cannot(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("pets.csv", index=False)
    words = ("compare", "pets.csv", "stream.label=kind", "stream.classes_per_task=1", *FAST)
    out = said(capsys, *words)
    assert "4 tasks: ant | bee | cat | dog" in out and "classes_per_task" not in out.splitlines()[-1]
    assert "settings of learners are not compared" in refused(capsys, *words, "learner.epochs=1")
    assert "is neither a file nor a known data set" in refused(capsys, "compare", "nothing.csv")
