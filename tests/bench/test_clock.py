"""Candidates are timed in turn."""

from prer.bench.clock import alternate, summary


def test_candidates_come_in_turn_and_the_order_is_reversed():
    called = []

    def candidate(name, seconds):
        return lambda: called.append(name) or seconds

    times = alternate({"ours": candidate("a", 1.0), "other": candidate("b", 3.0)}, 3)
    assert "".join(called) == "ab" + "ab" + "ba" + "ab"
    assert summary(times)["times as fast as"]["other"]["median"] == 3
    assert summary(times)["median"] == {"ours": 1000, "other": 3000}
