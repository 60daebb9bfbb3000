"""The verdicts of all tables in a few lines."""

from support.benchmarks import script

from prer.paper.tables import Table

verdicts_in_short = script("verdicts_in_short")


def test_verdicts_in_short():
    main = Table("table1", "", ["", "A BWT", "A Accuracy", "B BWT"], [["PRER", "1", "2", "3"]])
    main.rows.append(["PRER, Welch's t-test", "above", "below", "above"])
    main.rows.append(["PRER, literal, Welch's t-test", "-", "-", "-"])
    compared = Table("significance", "", ["", "compared", "PRER is"], [])
    compared.rows.extend([["A BWT", "PRER - ER", "better"], ["A BWT", "PRER - LWF", "worse"]])
    compared.rows.extend([["A BWT", "PRER - GEM", "better"], ["A Accuracy", "PRER - ER", "not decided"]])
    judged = [["it works (section 1)", "A", "", "holds"], ["it is fast (section 2)", "A", "", "does not hold"]]
    judged += [["it works (section 1)", "B", "", "not run"], ["it is old", "B", "", "not decided"]]
    assert verdicts_in_short.in_short([main, compared]) == [
        "PRER, our numbers against the paper's (Welch's t-test): above (A BWT, B BWT); below (A Accuracy).",
        "PRER against the others on A (corrected t-test): "
        "BWT better (ER, GEM), worse (LWF); Accuracy not decided (ER).",
    ]
    assert verdicts_in_short.in_short([]) == []
    short = verdicts_in_short.of_claims(Table("claims", "", ["claim", "data", "evidence", "verdict"], judged))
    assert short.columns == ["claim", "A", "B"] and short.rows == [
        ["it works (section 1)", "holds", "not run"],
        ["it is fast (section 2)", "does not hold", "-"],
        ["it is old", "-", "not decided"],
    ]
