"""The model card."""

import json

from support.models import finished_run


def test_the_card_says_what_it_is(finished, run_on_vectors):
    result, card = json.loads((finished / "result.json").read_text()), (finished / "model" / "README.md").read_text()
    assert f"{result['accuracy']['mean']:.2f} ± {result['accuracy']['std']:.2f}" in card
    assert "licence: CC BY 4.0" in card and "5. 8, 9" in card and "stores 0 samples" in card
    other = (run_on_vectors[0] / "model" / "README.md").read_text()
    assert r"\<d\>" in other and "licence unknown" in other  # a label is text, not HTML


def test_only_the_card_of_a_generating_learner_has_the_command_to_sample(finished, tmp_path):
    naive = finished_run(tmp_path, "learner.name=naive", "learner.epochs=0")
    assert "prer sample MODEL --class 0" in (finished / "model" / "README.md").read_text()
    assert "prer sample" not in (naive / "model" / "README.md").read_text()


def test_the_card_of_a_head_that_has_grown_names_no_task(tmp_path):
    folder = finished_run(tmp_path, "learner.name=ncm", "stream.scenario=class")
    card = (folder / "model" / "README.md").read_text()
    assert "    prer predict MODEL FILE\n" in card and "all classes, after the last task" in card
    assert "Nobody needs to tell the task of a sample" in card
