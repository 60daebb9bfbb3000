"""Plug-ins: files with a learner of a user's own."""

PULLED = '''"""A learner of one's own: weights are pulled towards those after the last task."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from prer import Learner
from prer.settings import setting


@dataclass(kw_only=True)
class Pulled(Learner):
    """Keeps the encoder of the last task."""

    name = "pulled"
    pull: float = setting(0.1, "weight of the distance", low=0)

    def start(self, *arguments, **options):
        super().start(*arguments, **options)
        self.old_ = nn.Module()

    def memory(self):
        return {"old": self.old_}

    def loss(self, batch):
        old = dict(self.old_.named_buffers())
        pairs = [(p, old[f"weight{i}"]) for i, p in enumerate(self.encoder_.parameters()) if old]
        return super().loss(batch) + self.pull * sum((p - q).square().flatten(1).sum(1) for p, q in pairs)

    def after_task(self, task):
        for number, parameter in enumerate(self.encoder_.parameters()):
            self.old_.register_buffer(f"weight{number}", parameter.detach().clone())
'''


def write_plugin(folder, name="mine.py", text=PULLED):
    """Write a plug-in; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name
