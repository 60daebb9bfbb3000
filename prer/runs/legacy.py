"""The names of run folders in version 0.1.0."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from prer.densities.flow import FlowSettings
from prer.densities.gaussian import GaussianSettings
from prer.learners.prer import PRER
from prer.migration import MOVED, SWITCHES, former
from prer.presets import recommended

if TYPE_CHECKING:
    from prer.runs.experiment import Experiment

# The settings of schema 1, whose hash covered all of them. This list never changes.
STREAM = (
    "data kind classes_per_task tasks order shuffle count degrees domains draw label "
    "size fit crop flip resplit validation"
)
ANY = "channels hidden embedding normalise dropout batch epochs lr optimiser"
OWN = {
    "naive": "",
    "joint": "",
    "lwf": "form size weight softness memory_batch",
    "ewc": "weight form fading fisher samples",
    "si": "weight damping",
    "gem": "size margin memory_batch",
    "agem": "size memory_batch",
    "er": "size weight distance memory_batch",
    "replay": "size selection weight memory_batch",
    "der": "size weight label_weight memory_batch",
    "dgr": "latent epochs_generator lr_generator weight memory_batch",
    "prer": "schedule epochs_autoencoder epochs_flow lr_autoencoder decay_autoencoder lr_flow decay_flow weight anchor "
    "distance share augment temperature sparsity sparsity_on labels label_weight density levels blocks norm condition "
    "condition_size one_hot class_prior bounded permutation restart reencode jitter clamp",
}


def former_hashes(experiment: Experiment) -> Iterator[str]:
    """The hashes that the experiment had in earlier versions.

    Those of a Gaussian covered the settings of a flow, which it never used: the recommended ones, or the defaults.
    """
    density = getattr(experiment.learner, "density", None)
    if not isinstance(density, GaussianSettings):
        hashes = [hash_of_schema_1(experiment)]
    else:
        table = recommended(experiment.stream.data, "prer")["learner"].get("density", {})
        flows = FlowSettings(**{key: value for key, value in table.items() if key != "name"}), FlowSettings()
        learners: list[Any] = [replace(cast(PRER, experiment.learner), density=flow) for flow in flows]
        twins = [replace(experiment, learner=learner) for learner in learners]
        of_gaussian = [former(twin.chosen()["learner"]) | {"density": "gaussian"} for twin in twins]
        hashes = [twin.hash_with(table) for twin, table in zip(twins, of_gaussian, strict=True)]
        hashes += [hash_of_schema_1(twin, {"density": "gaussian"}) for twin in twins]
    yield from (found for found in hashes if found is not None)


def hash_of_schema_1(experiment: Experiment, learner: Mapping[str, Any] = MappingProxyType({})) -> str | None:
    """The hash of the experiment in version 0.1.0, with these changes; None if that version could not express it."""
    all_settings, chosen = experiment.tables(), experiment.chosen()
    for tables in (all_settings, chosen):
        tables["learner"] = former(tables["learner"]) | dict(learner)
    name = all_settings["learner"]["name"]
    if name not in OWN:
        return None
    content: dict[str, Any] = {"seeds": list(experiment.seeds), "device": experiment.device}
    for table, keys in (("stream", STREAM), ("learner", f"name {ANY} {OWN[name]}")):
        now = {key: MOVED.get(f"{table}.{key}", f"{table}.{key}").partition(".")[2] for key in keys.split()}
        values = SWITCHES | all_settings[table]
        if not chosen[table].keys() <= set(now.values()) <= values.keys():
            return None  # it has a setting that is newer, or no flow, whose settings were part of every hash
        content[table] = {key: values[new] for key, new in now.items()}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
