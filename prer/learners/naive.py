"""Naive: train on each task in turn and do nothing about forgetting. The lower reference."""

from dataclasses import dataclass

from prer.learners.base import Learner


@dataclass(kw_only=True)
class Naive(Learner):
    """Fine-tuning; also called finetune or sgd."""

    name = "naive"
