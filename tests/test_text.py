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
        ("c\u200dd", r"c\u200dd"),
    ],
)
def test_what_is_invisible_is_escaped_and_letters_stay(text, expected):
    assert printable(text) == expected


def test_a_page_keeps_the_joiners_of_letters_and_emoji():
    text = "\u0645\u06cc\u200c\u062e 👩\u200d🔬\n"
    assert excerpt(text) == text.replace("\n", "\\n")


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
    assert did_you_mean("zzz", ["batch", "epochs"]) == "; known: batch, epochs"
    for word, known in (("intent", "text"), ("seeds", "levels")):  # they only share some letters
        assert did_you_mean(word, ["batch", known]) == f"; known: batch, {known}"
    many = [f"w{i}" for i in range(21)]
    assert did_you_mean("q", many[:20]) == f"; known: {', '.join(many[:20])}"
    assert did_you_mean("q", many) == f"; known: {', '.join(many[:20])}, ..."
    assert did_you_mean("a\x1bb", ["a\x1b"]) == r", did you mean 'a\\x1b'?"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (7.2, "7 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (83, "1 min 23 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7300, "2 h 1 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_a_time_is_rounded_as_people_say_it(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [(90, 1.556, "90.00 ± 1.56"), (-0.5, None, "-0.50"), (None, None, "-"), (0.0, 0.0, "0.00 ± 0.00")],
)
def test_a_metric_has_its_spread_where_it_is_known(mean, std, text):
    assert plus_minus({"mean": mean, "std": std, "values": [mean]}) == text
