"""The paper's claims, and whether they hold in our runs, by explicit rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prer.data.catalogue import CATALOGUE
from prer.paper import METHODS, evidence, rules
from prer.paper.evidence import GROWTH, MUCH, Evidence, Pair, Verdict, by, judged, of_cost, of_samples
from prer.paper.plan import Request, data_of
from prer.paper.rules import BEHIND
from prer.paper.significance import TESTS, WORDS, comparisons
from prer.paper.table1 import METRICS, Outcomes, overlap_of
from prer.paper.tables import Cell, Table
from prer.paper.variants import OURS
from prer.runs.significance import MARGIN


class Claim(NamedTuple):
    """One claim.

    Attributes:
        part: the part of `prer reproduce` on whose data sets it is judged.
        says: the claim, and where the paper makes it.
        rule: how it is judged.
        judge: computes the verdict from the evidence and the pairs.
        pairs: the pairs of variants or methods that are compared.
    """

    part: str
    says: str
    rule: str
    judge: Callable[..., Verdict]
    pairs: tuple[Pair, ...] = ()


CONDITIONED = "a flow whose first coupling sees the class generates every class"
CLAIMS = {
    "embeddings": Claim(
        "claims",
        "embeddings are easier to generate than inputs (introduction)",
        "compares ours with pixels, and neither, a variant that generates nothing, with pixels. The claim holds if "
        "ours is better than pixels in BWT and Accuracy, and the variant without generation is better than pixels "
        "in neither metric; otherwise it is not decided. The reason: pixels is DGR, whose encoder learns with "
        "labels and without R. If even a variant without generation beats it, the generator need not be the cause "
        "of the difference",
        by(rules.easier),
        ((OURS, "pixels"), ("neither", "pixels")),
    ),
    "regularise": Claim(
        "claims",
        "regularisation is better than augmentation (introduction)",
        "compares no-anchor with augment-only, because the anchor is not in the paper. The claim holds if BWT is "
        "better and Accuracy is better or not worse; it does not hold if one of them is worse",
        by(rules.remembers),
        (("no-anchor", "augment-only"),),
    ),
    "regularise-literal": Claim(
        "claims",
        "with all settings as in the paper, regularisation is better than augmentation",
        "compares literal with literal-no-r, by the same rule",
        by(rules.remembers),
        (("literal", "literal-no-r"),),
    ),
    "sparsity": Claim(
        "claims",
        "sparsity improves the classification (section 3.3)",
        "compares the Accuracy of ours with that of no-sparsity. The claim holds if it is better, and does not hold "
        "if it is worse",
        by(rules.classifies),
        ((OURS, "no-sparsity"),),
    ),
    "phases": Claim(
        "claims",
        "three separate phases improve the results (section 3.3)",
        "compares labels-head with one-phase, because in both the loss of the head reaches the encoder; one-phase "
        "also has one learning rate for all parts, no decay of the flow's rate and no jitter. The claim holds if "
        "one of BWT and Accuracy is better and the other is better or not worse. It does not hold if one is worse, "
        f"or if both intervals lie below +{MARGIN} points, which makes the difference negligible",
        by(rules.improves),
        (("labels-head", "one-phase"),),
    ),
    "flow": Claim(
        "claims",
        "normalizing flows are particularly effective (section 3.4)",
        "compares ours with gaussian, which has a Gaussian for each class, by the rule of the three phases",
        by(rules.improves),
        ((OURS, "gaussian"),),
    ),
    "levels-better": Claim(
        "claims",
        "a flow with several levels is better (section 3.4)",
        "compares ours with one-level by the rule of the three phases",
        by(rules.improves),
        ((OURS, "one-level"),),
    ),
    "levels-smaller": Claim(
        "claims",
        "a flow with several levels is smaller (section 3.4)",
        "compares the stored floats of ours and of one-level",
        evidence.by_floats,
        ((OURS, "one-level"),),
    ),
    "condition-data": Claim(
        "claims",
        f"{CONDITIONED}, if it is the one next to the data (section 3.4)",
        "uses condition-first (the paper does not say from which side it counts): the share of the memory's "
        "samples after the last task that the head assigns to their class, minus the final accuracy on test images, "
        f"paired over seeds. The claim holds if the 95 % interval lies above -{BEHIND:g} points, and does not hold "
        "if it lies below",
        of_samples("condition-first"),
    ),
    "condition-noise": Claim(
        "claims",
        f"{CONDITIONED}, if it is the one next to the noise (section 3.4)",
        "applies the same rule to condition-last",
        of_samples("condition-last"),
    ),
    "literal-data": Claim(
        "claims",
        "with all settings as in the paper, the flow generates every class, if the first coupling is next to the data",
        "applies the same rule to literal",
        of_samples("literal"),
    ),
    "literal-noise": Claim(
        "claims",
        "with all settings as in the paper, the flow generates every class, if the first coupling is next to the noise",
        "applies the same rule to literal-last",
        of_samples("literal-last"),
    ),
    "ours": Claim(
        "claims",
        "our flow, which sees the class in every coupling and in its prior, generates every class",
        "applies the same rule to ours",
        of_samples(OURS),
    ),
    "constant": Claim(
        "claims",
        "the memory is constant (abstract)",
        f"holds if the memory of ours grows by less than {GROWTH:g} % from the first task to the last",
        evidence.of_growth,
    ),
    "smaller": Claim(
        "claims",
        "the generative model is smaller than one of pixels (conclusion)",
        "compares the stored floats of ours with those of pixels",
        evidence.of_generators("floats"),
    ),
    "faster": Claim(
        "claims",
        "the generative model takes less time than one of pixels (conclusion)",
        "shows the seconds of ours and of pixels. It is not decided, because other runs shared the machine when these "
        "seconds were measured",
        evidence.of_generators("seconds"),
    ),
    "strong-lwf": Claim(
        "significance",
        "GEM and ER perform better than LWF (section 4)",
        "holds if both are better in BWT and Accuracy, and does not hold if one is worse",
        by(rules.better),
        (("gem", "lwf"), ("er", "lwf")),
    ),
    "strong-ewc": Claim(
        "significance",
        "GEM and ER perform better than EWC (section 4)",
        "is judged by the same rule",
        by(rules.better),
        (("gem", "ewc"), ("er", "ewc")),
    ),
    "above-naive": Claim(
        "significance",
        "LWF and EWC are better than Naive (section 4)",
        "holds if both are better in BWT and Accuracy, and does not hold if one is worse",
        by(rules.better),
        (("lwf", "naive"), ("ewc", "naive")),
    ),
    "little": Claim(
        "significance",
        "LWF and EWC are not much better than Naive (section 4)",
        f"holds if more than {100 * (1 - MUCH):.0f} % of Naive's forgetting remains with each, by the 95 % interval, "
        "and does not hold if significantly less remains with one. In the paper, neither removes a third of it",
        evidence.by_share,
        (("lwf", "naive"), ("ewc", "naive")),
    ),
    "er-bwt": Claim(
        "significance",
        "ER forgets slightly less than GEM (section 4)",
        "compares their BWT. It holds if ER's is better, and does not hold if it is worse",
        by(rules.forgets_less),
        (("er", "gem"),),
    ),
    "er-accuracy": Claim(
        "significance",
        "ER is slightly more accurate than GEM (section 4)",
        "compares their Accuracy by the same rule",
        by(rules.classifies),
        (("er", "gem"),),
    ),
    "bwt": Claim(
        "significance",
        "PRER's BWT is better than that of all other methods by a significant margin (section 4)",
        "uses the same tests as the table of significance, adjusted over the paper's methods. The claim holds if PRER "
        "+ anchor is better than each of the other ones. It does not hold if PRER is worse than one, or if the whole "
        f"interval against one lies below +{MARGIN} points, which makes the difference negligible",
        evidence.of_bwt,
    ),
    "accuracy": Claim(
        "significance",
        "PRER's Accuracy is comparable to the best (section 4)",
        "compares PRER + anchor with the method of the paper that has the best mean, paired over seeds. The claim "
        f"holds if the 95 % interval of the difference lies above -{MARGIN} points, and does not hold if it lies "
        "below",
        evidence.of_accuracy,
    ),
    "robust": Claim(
        "significance",
        "PRER is more robust to the initial weights (section 4)",
        "uses Levene's test of the spread of Accuracy around its median, with Holm's correction over the methods. The "
        "claim holds if PRER's spread is the smallest and each difference is significant, and does not hold if another "
        "spread is significantly smaller",
        evidence.of_spread,
    ),
    "memory": Claim(
        "table2",
        "PRER needs the least memory, counted in floats as in the paper (section 4)",
        "compares the floats of Table 2 after the last task. The claim holds if every other method of the paper that "
        "stores anything stores more",
        of_cost("floats"),
    ),
    "bytes": Claim(
        "table2",
        "PRER needs the least memory, in bytes as it is stored (section 4)",
        "is judged by the same rule, with bytes",
        of_cost("bytes"),
    ),
    "time": Claim(
        "table2",
        "PRER's time is competitive (section 4)",
        "compares the seconds of Table 2. The claim holds if at least one other method of the paper that stores "
        "anything takes longer",
        of_cost("seconds"),
    ),
    "cheaper": Claim(
        "table2",
        "ER needs less memory than GEM (section 4)",
        "compares the floats of Table 2. The paper's own table contradicts this for colour images",
        evidence.of_er_and_gem("floats"),
    ),
    "quicker": Claim(
        "table2",
        "ER needs less time than GEM (section 4)",
        "compares the seconds of Table 2",
        evidence.of_er_and_gem("seconds"),
    ),
}
PAIRS = tuple(dict.fromkeys(pair for claim in CLAIMS.values() for pair in claim.pairs))
NOT_TESTED = (
    "Not tested, because our runs do not measure it: sparsity improves the reconstruction, three phases improve the "
    "stability, several levels improve the convergence (sections 3.3 and 3.4); the flow is very easy to train and "
    "needs no remedy against its own forgetting (section 3.4); sigmoid(s + 2) stabilises the training (section 4); "
    "LWF is sensitive to the stored images (section 4)."
)
FAMILY = (
    f"{TESTS}. Two runs are compared over the seeds that both have. The evidence has the p-values and intervals of "
    "the corrected test. Numbers of floats, bytes and seconds are not tested. The p-values of PRER against the paper's "
    "other methods are adjusted by Holm's method over these alone, so that rows of ours change no verdict. All "
    "others are adjusted by Holm's method over the pairs that the claims compare on a data set, in both metrics. They "
    f"differ from those of the ablation, which are adjusted over all variants. {WORDS}."
)


def table(request: Request, every: Mapping[str, Outcomes]) -> Table:
    """A row for each claim and requested data set, from the runs of ablation, significance and Table 2."""
    corrected, plain = ({data: gathered(every, data, test) for data in request.data()} for test in (True, False))
    rows: list[list[Cell]] = [
        [
            claim.says,
            request.title(data),
            *claim.judge(corrected[data], *claim.pairs),
            claim.judge(plain[data], *claim.pairs)[1],
        ]
        for claim in CLAIMS.values()
        for data in data_of(every[claim.part])
        if data in corrected
    ]
    notes = [f"{claim.says[0].upper()}{claim.says[1:]}: {claim.rule}." for claim in CLAIMS.values()]
    columns = ["claim", "data", "evidence, corrected test", "verdict, corrected test", "verdict, plain test"]
    return Table(
        "claims", "The paper's claims, and the same claims about our flow", columns, rows, [FAMILY, *notes, NOT_TESTED]
    )


def gathered(every: Mapping[str, Outcomes], data: str, corrected: bool = False) -> Evidence:
    """The evidence on a data set, from the runs of all parts, by the plain or the corrected test."""
    variants, methods, costs = (
        {name: outcome for (owner, name), outcome in every[part].items() if owner == data}
        for part in ("claims", "significance", "table2")
    )
    methods, costs = ({name: of[name] for name in METHODS if name in of} for of in (methods, costs))
    runs = variants | methods
    overlap = overlap_of(every["significance"]) if corrected else 0.0
    of_the_paper = {(data, name): outcome for name, outcome in methods.items()}
    against = {metric: comparisons(of_the_paper, data, metric, overlap) for metric in METRICS}
    return Evidence(runs, costs, against, judged(runs, PAIRS, overlap), overlap, CATALOGUE[data].shape)
