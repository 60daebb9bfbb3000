"""The environment that a run notes."""

from prer.runs import environment


def test_a_copy_without_a_checkout_is_told_its_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(environment, "__file__", str(tmp_path / "prer" / "runs" / "environment.py"))
    monkeypatch.delenv("PRER_COMMIT", raising=False)
    assert environment.environment()["commit"] is None
    monkeypatch.setenv("PRER_COMMIT", "d1b603c0772c")
    assert environment.environment()["commit"] == "d1b603c0772c"
