"""The settings of a lesson: how a new model is made, how data is read, and what an existing model has fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prer.cli.overrides import overrides
from prer.errors import InputError
from prer.settings import values_of

if TYPE_CHECKING:
    from prer.data.arrays import Data
    from prer.data.entry import Progress
    from prer.models.model import Model
    from prer.runs.experiment import Experiment

OF_A_LESSON = ("balance", "validation")  # settings of [stream] that each lesson chooses
OF_A_MODEL = ("label", "size", "fit", "missing", "features", "text", "scenario")  # those that the first lesson fixes


@dataclass(frozen=True)
class Lesson:
    """What a command was asked to teach.

    Attributes:
        experiment: all settings.
        given: the keys of the settings that were given.
    """

    experiment: Experiment
    given: frozenset[str]

    def model(self, path: Path) -> tuple[Model, str | None]:
        """The model of a folder and its version, or a new model."""
        from prer.address import as_device
        from prer.models import folder
        from prer.models.model import Model

        if not (path / folder.ABOUT).exists():
            asked = self.experiment
            return Model(asked.learner, asked.seeds, asked.device, asked.stream.scenario), None
        model, version = folder.load_version(path, as_device(self.experiment.device))
        self._check(model, path)
        return model, version

    def _check(self, model: Model, path: Path) -> None:
        """Refuse settings that differ from those that the first lesson has fixed."""
        asked, learner, reading = self.experiment, model.learner, model.reading
        fixed = {f"stream.{key}": getattr(reading, key) for key in ("label", "size", "fit", "missing", "text")}
        fixed |= {"stream.features": reading.extractor}
        fixed |= {"stream.scenario": model.scenario, "seeds": model.seeds, "learner.name": learner.name}
        fixed |= {f"learner.{key}": value for key, value in values_of(learner).items()}
        now = {f"stream.{key}": getattr(asked.stream, key) for key in OF_A_MODEL} | {"seeds": asked.seeds}
        now |= {"learner.name": asked.learner.name}
        now |= {f"learner.{key}": value for key, value in values_of(asked.learner).items()}
        for key in sorted(self.given - {"device", *(f"stream.{key}" for key in OF_A_LESSON)}):
            if key not in fixed or now[key] != fixed[key]:
                raise InputError(f"{key} was fixed by the first lesson of {path}; leave it out, or make a new model")

    def read(self, model: Model, progress: Progress) -> Data:
        """The validated samples and labels, read as those of the model."""
        from prer.data.arrays import as_pair

        data = self.experiment.stream.read(model.reading if model.tasks else None, progress)
        x, y = as_pair(data)
        return data._replace(x=x, y=y)

    @property
    def how(self) -> dict[str, Any]:
        """The settings of this lesson alone."""
        return {key: getattr(self.experiment.stream, key) for key in OF_A_LESSON}


def lesson_of(settings: Sequence[str], data: str, seeds: str | None, device: str | None) -> Lesson:
    """Parse the arguments of a command that teaches a model."""
    from prer.runs.experiment import Experiment, parse_override
    from prer.streams.config import StreamConfig

    words = overrides(settings, seeds, device)
    tables = [parse_override(word) for word in words]
    given = {
        f"{table}.{key}" for values in tables for table, of in values.items() if isinstance(of, dict) for key in of
    }
    given |= {key for values in tables for key, value in values.items() if not isinstance(value, dict)}
    known = {f"stream.{key}" for key in (*OF_A_LESSON, *OF_A_MODEL)}
    for f in fields(StreamConfig):
        if f"stream.{f.name}" in given - known:
            raise InputError(
                f"stream.{f.name} has no meaning for a lesson; leave it out (choose from {', '.join(sorted(known))})"
            )
    if given & {"name", "like"}:
        raise InputError(f"{min(given & {'name', 'like'})} has no meaning for a lesson; leave it out")
    base = {"seeds": 1, "stream": {"data": data, "scenario": "class"}}
    return Lesson(Experiment.layered([base, *tables]), frozenset(given))
