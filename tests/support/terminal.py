"""Consoles that keep what is printed, and events as a run tells them."""

from io import StringIO

from rich.console import Console


def log(width=200):
    """A console that writes to a file."""
    return Console(file=StringIO(), width=width)


def terminal():
    """A console that somebody watches."""
    return Console(file=StringIO(), width=120, force_terminal=True)


def shown(thing, width=200):
    """What a log holds of something."""
    console = log(width)
    console.print(thing)
    return console.file.getvalue()


def epoch(task=0, phase="flow", number=0, epochs=2, seconds=1.0, loss=(0.5, 1.5)):
    """The event after an epoch."""
    event = {"event": "epoch", "task": task, "phase": phase, "epoch": number, "epochs": epochs}
    return event | {"loss": list(loss), "seconds": seconds}


def health(agreement, label="cat"):
    """The event about the samples of a class."""
    return {"event": "health", "task": 1, "class": label, "agreement": [1.0], "agreement_decoded": agreement}
