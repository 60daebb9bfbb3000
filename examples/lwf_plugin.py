"""Learning without forgetting (Li and Hoiem, 2017), without a memory, as a plug-in.

Unlike in the paper, old heads are not trained further: only the encoder learns to preserve their predictions.

prer run learner.name=lwf-plugin --plugin examples/lwf_plugin.py
"""

from dataclasses import dataclass

from torch import Tensor, no_grad

from prer import Learner
from prer.learners.interfaces import Batch
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class LwF(Learner):
    """Distils what the old heads predict for the new samples before the task is learned."""

    name = "lwf-plugin"
    weight: float = setting(1.0, "weight of the distillation", low=0)
    softness: float = setting(2.0, "temperature of the distilled predictions", low=1)

    def learn(self, task: Task) -> None:
        """Record the predictions of each old head for all new samples [S, n, K], then learn the task."""
        with no_grad():
            z = self.embed(task, task.train_rows(self.address_.seeds))
            self.recorded = [(head(z) / self.softness).softmax(-1) for head in self.heads_]
        super().learn(task)
        del self.recorded

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy of the new head, plus that of each old head with its recorded predictions [S]."""
        total, z = super().loss(batch), self.encoder_(batch.x)
        for head, recorded in zip(self.heads_, self.recorded, strict=False):  # the new head has no record
            target = recorded.gather(1, batch.rows.unsqueeze(-1).expand(-1, -1, recorded.shape[-1]))
            outputs = head(z, batch.noise)[..., : recorded.shape[-1]]  # a head that grows has more of them now
            found = (outputs / self.softness).log_softmax(-1)
            total = total - self.weight * self.softness**2 * (target * found).sum(-1).mean(1)
        return total
