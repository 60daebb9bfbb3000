"""Every recommended setting: by data set and learner (files, `tables.py`), or by the size of the data (`auto.py`)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from prer.presets.tables import TABLES


def experiment_file(data: str, learner: str) -> Path:
    """Path of the experiment file for a data set and a method of the paper's Table 1."""
    return Path(__file__).parent / f"{data}-{learner}.toml"


SAME = {"prer-variant": "prer"}  # learners with the settings of another one


def recommended(data: str, learner: str) -> dict[str, dict[str, Any]]:
    """The settings recommended for a data set and a learner, as the tables of an experiment; empty for other data."""
    learner = SAME.get(learner, learner)
    if data not in TABLES:
        return {"stream": {}, "learner": {}}
    if (file := experiment_file(data, learner)).exists():
        tables = tomllib.loads(file.read_text("utf-8"))
        return {
            table: {key: value for key, value in tables[table].items() if key not in ("data", "name")}
            for table in ("stream", "learner")
        }
    table = TABLES[data]
    return {"stream": dict(table["stream"]), "learner": {**table["learner"], **table.get(learner, {})}}
