"""Text that is safe to show, hints about unknown words, and numbers as people read them."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.text import clock, did_you_mean, excerpt, plus_minus, printable, sentence, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain café 😀", "plain café 😀"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x1b[2J\x07\x7f", r"\x1b[2J\x07\x7f"),
        ("a\u202eb\u2066c\ufeffd", r"a\u202eb\u2066c\ufeffd"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\ue000\U000f0000", r"\ue000\U000f0000"),
        ("\u0645\u06cc\u200c\u062e 👩\u200d🔬\n", "\u0645\u06cc\u200c\u062e 👩\u200d🔬\\n"),
    ],
)
def test_what_is_invisible_is_escaped_and_letters_stay(text, expected):
    assert printable(text) == expected


@settings(deadline=None, database=None)
@given(st.text())
def test_no_text_can_break_a_line_or_control_a_terminal(text):
    safe = printable(text)
    assert len(safe.splitlines()) <= 1
    assert not any(unicodedata.category(c) == "Cc" for c in safe)
    assert not {unicodedata.bidirectional(c) for c in safe} & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "PDI"}
    safe.encode()


def test_lone_surrogates_become_text_that_can_be_written():
    assert printable("a\ud800").encode() == rb"a\ud800"


def test_of_a_long_name_the_end_is_shown_and_of_a_long_value_the_beginning():
    assert shown("x" * 60) == "x" * 60
    assert shown("a" * 60 + "z") == "..." + "a" * 56 + "z"
    assert excerpt("x" * 400) == "x" * 400
    assert excerpt("a" + "z" * 400) == "a" + "z" * 398 + "…"
    assert shown("a\nb") == excerpt("a\nb") == r"a\nb"
    assert (shown(12), excerpt([1])) == ("12", "[1]")


def test_the_message_of_an_error_is_one_line():
    assert sentence(ValueError("a\nb")) == r"a\nb"
    assert sentence(ValueError("x" * 2000)) == "x" * 2000
    assert sentence(ValueError("x" * 2001)) == "x" * 2000 + "..."


def test_an_unknown_word_gets_the_closest_or_all_that_are_known():
    assert did_you_mean("epoch", ["batch", "epochs"]) == ", did you mean 'epochs'?"
    assert did_you_mean("zzz", ["batch", "epochs"]) == "; known are batch, epochs"
    many = [f"w{i}" for i in range(21)]
    assert did_you_mean("q", many[:20]) == f"; known are {', '.join(many[:20])}"
    assert did_you_mean("q", many) == f"; known are {', '.join(many[:20])}, ..."
    assert did_you_mean("a\x1bb", ["a\x1b"]) == r", did you mean 'a\\x1b'?"


MEANS = {(99.414, 0.104): "99.41 ± 0.10", (5.0, None): "5.00", (-0.5, 0.0): "-0.50 ± 0.00", (None, None): "-"}


@pytest.mark.parametrize(("mean", "std"), MEANS)
def test_mean_and_standard_deviation(mean, std):
    assert plus_minus({"mean": mean, "std": std}) == MEANS[mean, std]


CLOCKS = {0.4: "0 s", 59.4: "59 s", 59.6: "1 min 0 s", 3599: "59 min 59 s", 3600: "1 h 0 min", 90_000: "25 h 0 min"}


@pytest.mark.parametrize("seconds", CLOCKS)
def test_durations(seconds):
    assert clock(seconds) == CLOCKS[seconds]
