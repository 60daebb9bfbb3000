"""How our runs differ from the paper. A test compares these sentences with the experiment files and the code."""

OURS = (
    "The anchor pulls the embeddings of new samples to where the old encoder had them. It is not in the paper, and "
    "needs a copy of the old encoder while a task is learned. The row PRER has no anchor.",
    "Every coupling of the flow, and its prior, see the class. In the paper only the first coupling does.",
    "A class is a learned vector. In the paper it is one-hot.",
    "The flow's learning rate is 0.001 and falls to 0. In the paper it is 0.0001.",
    "Norms use the statistics of their batch, scales of couplings are bounded, and every second permutation swaps the "
    "halves. The paper has running estimates, no bound, and random permutations.",
    "The flow learns old classes from samples that were decoded and encoded again.",
    "Heads are trained with Adam. The paper has SGD on MNIST and KMNIST.",
    "Samples have a temperature of 0.7 to 0.9, but 1.0 on SVHN. The paper has none.",
    "On CIFAR10, phase 1 of PRER + anchor sees the labels of new samples by the loss of the head. In the paper's section 3.3 "
    "it sees none. The ablation starts from settings without labels there.",
)
ALL = (
    'The embedding is linear. The paper uses the ReLU "in all the models", but no flow can model a mass at exactly 0.',
    'The sparsity penalty is the L1 norm of z. The paper says "regularizing the layers".',
    "The flow's norms are initialised on all embeddings of the first task. In the paper it is the first batch.",
    "The permutations of the flow are the same for all seeds. The paper does not say.",
    "The weights of R and of the sparsity penalty, which the paper does not state, were found by searches: one for PRER + "
    "anchor, one for PRER without it, and one with ten points for the literal settings.",
    "The flow is trained on standardised embeddings with a little noise, gradients are clamped, and samples far from the "
    "data are drawn again.",
    'The paper does not say from which side its "first" coupling counts. In the literal runs it is the one next to the '
    "data, in the variants condition-last and literal-last the one next to the noise.",
)


def differences() -> str:
    """Both lists as Markdown."""
    lists = {"In PRER and PRER + anchor:": OURS, "In all runs of PRER, also the literal ones:": ALL}
    return "\n\n".join("\n".join([head, "", *(f"- {line}" for line in lines)]) for head, lines in lists.items()) + "\n"
