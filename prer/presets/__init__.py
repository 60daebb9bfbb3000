"""Every recommended setting: by data set and learner (files, `tables.py`), or by the size of the data (`auto.py`)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from prer.presets.tables import TABLES

MIXTURE = {"name": "mixture", "shrinkage": "auto"}
# If nobody tells the task of a sample, on any data: found on validation data (docs/class-incremental.md).
NOBODY_TELLS: dict[str, Any] = {
    "prer": {"encoder": "patches", "embedding": "auto", "density": MIXTURE, "answer": "both"}
}
# Over features of a pretrained network, whether the task is told or not. References train a head on all their numbers.
HEAD = {"encoder": "identity", "embedding": 65_536}
OF_FEATURES: dict[str, Any] = {"prer": NOBODY_TELLS["prer"] | {"encoder": "identity"}}
OF_FEATURES |= dict.fromkeys(("naive", "replay", "der", "joint"), HEAD)


def experiment_file(data: str, learner: str) -> Path:
    """Path of the experiment file for a data set and a method of the paper's Table 1."""
    return Path(__file__).parent / f"{data}-{learner}.toml"


SAME = {"prer-variant": "prer"}  # learners with the settings of another one
CLOSED_FORMS = ("ncm", "slda", "ranpac")  # they have no network, and so none of the settings that learners share


def recommended(data: str, learner: str, scenario: str = "task", features: bool = False) -> dict[str, dict[str, Any]]:
    """The settings recommended for a data set and a learner, as tables of an experiment; few for other data.

    Args:
        data: name of the data set; empty: any data.
        learner: name of the learner.
        scenario: what is asked at test time.
        features: whether samples are features of a pretrained network; settings of a data set then do not apply.
    """
    learner = SAME.get(learner, learner)
    if features:
        return {"stream": {}, "learner": dict(OF_FEATURES.get(learner, {}))}
    tables = _class_tables(data) if scenario == "class" else TABLES.get(data)
    if tables is None:
        return {"stream": {}, "learner": {}}
    if scenario == "task" and (file := experiment_file(data, learner)).exists():
        tables = tomllib.loads(file.read_text("utf-8"))
        return {
            table: {key: value for key, value in tables[table].items() if key not in ("data", "name")}
            for table in ("stream", "learner")
        }
    alone = learner in (NOBODY_TELLS if scenario == "class" else ()) or learner.split("-")[0] in CLOSED_FORMS
    shared = {} if alone else tables["learner"]
    return {"stream": dict(tables["stream"]), "learner": {**shared, **tables.get(learner, {})}}


def class_file(data: str) -> Path:
    """Path of the settings for the scenario "class" on a data set: for the stream, for any learner, for one learner."""
    return Path(__file__).parent / f"class-{data}.toml"


def _class_tables(data: str) -> dict[str, Any]:
    """The tables of a data set; without a file, those of the scenario "task" that all learners share."""
    if data not in TABLES:
        return {"stream": {}, "learner": {}} | NOBODY_TELLS
    file = class_file(data)
    if file.exists():
        return tomllib.loads(file.read_text("utf-8")) | NOBODY_TELLS
    stream = {key: value for key, value in TABLES[data]["stream"].items() if key != "resplit"}
    return {"stream": stream, "learner": TABLES[data]["learner"]} | NOBODY_TELLS
