"""The paper's claims, and whether they hold here, by stated rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prer.paper import evidence, rules
from prer.paper.evidence import GROWTH, MUCH, Evidence, Pair, Verdict, by, judged, of_cost, of_samples
from prer.paper.plan import Request, data_of
from prer.paper.rules import BEHIND
from prer.paper.significance import WORDS, comparisons
from prer.paper.table1 import METRICS, Outcomes
from prer.paper.tables import Cell, Table
from prer.paper.variants import OURS
from prer.runs.significance import MARGIN


class Claim(NamedTuple):
    """One claim.

    Attributes:
        part: the part of `prer reproduce` on whose data sets it is judged.
        says: what the paper says, and where.
        rule: when it holds.
        judge: computes the verdict from the evidence and the pairs.
        pairs: the pairs of variants or methods that are compared.
    """

    part: str
    says: str
    rule: str
    judge: Callable[..., Verdict]
    pairs: tuple[Pair, ...] = ()


CLAIMS = {
    "embeddings": Claim(
        "claims",
        "embeddings are easier to generate than inputs (introduction)",
        "ours against the variant pixels, and the variant neither, which generates nothing, against pixels; holds "
        "where ours is better than pixels in BWT and Accuracy, and to generate nothing is better in none of them; else "
        "not decided, for pixels is DGR, whose encoder learns with labels and without R: where nothing generated beats "
        "it, too, the generator need not be what makes the difference",
        by(rules.easier),
        ((OURS, "pixels"), ("neither", "pixels")),
    ),
    "regularise": Claim(
        "claims",
        "to regularise is better than to augment (introduction)",
        "no-anchor against augment-only, as the anchor is ours; holds where BWT is better and Accuracy better or not "
        "worse, does not where one is worse",
        by(rules.remembers),
        (("no-anchor", "augment-only"),),
    ),
    "regularise-literal": Claim(
        "claims",
        "with all that the paper states at once, to regularise is better than to augment",
        "literal against literal-no-r; the same rule",
        by(rules.remembers),
        (("literal", "literal-no-r"),),
    ),
    "sparsity": Claim(
        "claims",
        "sparsity improves the classification (section 3.3)",
        "ours against no-sparsity; by Accuracy alone: holds where it is better, does not where it is worse",
        by(rules.classifies),
        ((OURS, "no-sparsity"),),
    ),
    "phases": Claim(
        "claims",
        "three separate phases improve the results (section 3.3)",
        "labels-head against joint, as in both the loss of the head reaches the encoder; joint also has one rate for "
        "all parts, no decay of the flow's rate and no jitter; holds where one of BWT and Accuracy is better and the "
        "other better or not worse, does not where one is worse, or where both intervals lie below "
        f"+{MARGIN} points, a difference that is shown to be negligible",
        by(rules.improves),
        (("labels-head", "joint"),),
    ),
    "flow": Claim(
        "claims",
        "normalizing flows are particularly effective (section 3.4)",
        "ours against gaussian, which has a Gaussian for each class; as for the three phases",
        by(rules.improves),
        ((OURS, "gaussian"),),
    ),
    "levels": Claim(
        "claims",
        "a flow of several levels does better, and is smaller (section 3.4)",
        "ours against one-level; as for the three phases, and holds only where ours also keeps fewer floats",
        evidence.by_levels,
        ((OURS, "one-level"),),
    ),
    "condition": Claim(
        "claims",
        "a flow whose first coupling sees the class generates every class (section 3.4)",
        "condition-first: the share of the memory's samples after the last task that the head takes for their class, "
        "less the final accuracy on test images, paired over seeds; holds where the 95 % interval lies above "
        f"-{BEHIND:g} points, does not where it lies below",
        of_samples("condition-first"),
    ),
    "literal": Claim(
        "claims",
        "with all that the paper states at once, the flow generates every class",
        "the same rule, of literal",
        of_samples("literal"),
    ),
    "ours": Claim(
        "claims",
        "our flow, which sees the class in every coupling and in its prior, generates every class",
        "the same rule, of ours",
        of_samples(OURS),
    ),
    "constant": Claim(
        "claims",
        "the memory is constant (abstract)",
        f"ours; holds where it grows by less than {GROWTH:g} % from the first task to the last",
        evidence.of_growth,
    ),
    "reduced": Claim(
        "claims",
        "time and size of the generative model are reduced (conclusion)",
        "floats kept and seconds of ours against pixels; holds where both are less, does not where the floats are "
        "not; else not decided, for these seconds were measured with other runs beside",
        evidence.of_generators,
    ),
    "strong": Claim(
        "significance",
        "GEM and ER perform better than LWF and EWC (section 4)",
        "each of the two against each of the others; holds where all are better in BWT and Accuracy, does not where "
        "one is worse",
        by(rules.better),
        (("gem", "lwf"), ("gem", "ewc"), ("er", "lwf"), ("er", "ewc")),
    ),
    "little": Claim(
        "significance",
        "LWF and EWC are better than Naive but not by much, so that LWF is not reliable (section 4)",
        "holds where both are better than Naive in BWT and Accuracy, and each leaves more than "
        f"{100 * (1 - MUCH):.0f} % of Naive's forgetting, by the 95 % interval; does not where one is worse, or surely "
        "leaves less; in the paper none takes a third of it away",
        evidence.by_share,
        (("lwf", "naive"), ("ewc", "naive")),
    ),
    "er": Claim(
        "significance",
        "ER is slightly better than GEM in BWT and Accuracy (section 4)",
        "holds where it is better in both, does not where it is worse in one",
        by(rules.better),
        (("er", "gem"),),
    ),
    "bwt": Claim(
        "significance",
        "PRER's BWT is better than that of all other methods, by a significant margin (section 4)",
        "by the tests and the p of the table of significance; holds where PRER is better than each of the others, "
        f"does not where it is worse than one, or where the whole interval of one lies below +{MARGIN} points, a "
        "difference that is shown to be negligible",
        evidence.of_bwt,
    ),
    "accuracy": Claim(
        "significance",
        "PRER's Accuracy is comparable to the best one's (section 4)",
        "PRER less the method with the best mean, paired over seeds; holds where the 95 % interval lies above "
        f"-{MARGIN} points, does not where it lies below",
        evidence.of_accuracy,
    ),
    "robust": Claim(
        "significance",
        "PRER is more robust to the initial weights (section 4)",
        "Levene's test of the spread of Accuracy around its median, Holm's correction over the methods; holds where "
        "PRER's is the smallest and each difference is significant, does not where another is significantly smaller",
        evidence.of_spread,
    ),
    "memory": Claim(
        "table2",
        "PRER needs the least memory (section 4)",
        "floats of Table 2 after the last task; holds where each method that keeps something keeps more",
        of_cost("floats"),
    ),
    "time": Claim(
        "table2",
        "PRER's time is competitive (section 4)",
        "seconds of Table 2; holds where at least one of the methods that keep something takes longer",
        of_cost("seconds"),
    ),
    "cheaper": Claim(
        "table2",
        "ER needs less memory and less time than GEM (section 4)",
        "floats and seconds of Table 2; holds where both are less",
        evidence.of_er_and_gem,
    ),
}
PAIRS = tuple(pair for claim in CLAIMS.values() for pair in claim.pairs)
NOT_TESTED = (
    "Not tested here, as no run could tell: sparsity improves the reconstruction, three phases help the stability, "
    "several levels improve the convergence (sections 3.3 and 3.4); the flow is very easy to train and needs nothing "
    "against its own forgetting (section 3.4); sigmoid(s + 2) stabilises the training (section 4); LWF is sensitive to "
    "the images that it keeps (section 4)."
)
FAMILY = (
    "Paired t-tests over seeds. The p of PRER against other methods are those of the table of significance; all others "
    "have Holm's correction over the pairs that the claims name on a data set and both metrics, so they are not the "
    f"ablation's, which are corrected over all variants. {WORDS}."
)


def table(request: Request, every: Mapping[str, Outcomes]) -> Table:
    """A row for each claim and requested data set, from the runs of ablation, significance and Table 2."""
    about = {data: gathered(every, data) for data in request.data()}
    rows: list[list[Cell]] = [
        [claim.says, request.title(data), *claim.judge(about[data], *claim.pairs)]
        for claim in CLAIMS.values()
        for data in data_of(every[claim.part])
        if data in about
    ]
    notes = [f"{claim.says[0].upper()}{claim.says[1:]}: {claim.rule}." for claim in CLAIMS.values()]
    columns = ["claim", "data", "evidence", "verdict"]
    return Table("claims", "The paper's claims, and of our flow the same", columns, rows, [FAMILY, *notes, NOT_TESTED])


def gathered(every: Mapping[str, Outcomes], data: str) -> Evidence:
    """The evidence on a data set, from the runs of all parts."""
    variants, methods, costs = (
        {name: outcome for (owner, name), outcome in every[part].items() if owner == data}
        for part in ("claims", "significance", "table2")
    )
    runs = variants | methods
    against = {metric: comparisons(every["significance"], data, metric) for metric in METRICS}
    return Evidence(runs, costs, against, judged(runs, PAIRS))
