"""ContinualClassifier: a model with the interface of scikit-learn, which is taught again and again."""

# n samples, K classes, C channels, H and W image

from __future__ import annotations

import json
import math
import numbers
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, get_args

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from prer.address import MOST_SEEDS, as_device
from prer.data import rows
from prer.data.arrays import TEXTS, Data, as_labels, as_samples, with_medians
from prer.data.columns import PYTHON, check_names
from prer.data.frames import is_frame, of_frame
from prer.data.reading import Missing, Reading
from prer.data.rows import as_data, samples_of
from prer.data.tables import Asked
from prer.data.texts import is_texts, of_rows
from prer.errors import InputError
from prer.features.extraction import extracted
from prer.features.extractor import Extractor
from prer.features.named import NAMES, as_extractor, extractor_of
from prer.learners.base import Learner
from prer.learners.registry import find
from prer.models import folder as files
from prer.models import plain
from prer.models.model import Model
from prer.models.progress import Lines, counted
from prer.models.teaching import teach
from prer.presets import recommended
from prer.settings import build
from prer.streams.task import Label, Scenario, Task
from prer.text import shown
from prer.training.loop import Observer


class ContinualClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns new classes, or more of known ones, whenever data arrives; old data is not needed.

    Unlike other estimators of scikit-learn, `partial_fit` accepts new classes in any call, and `classes_` grows in the
    order of their arrival, so that the columns of `predict_proba` keep their places.

    Args:
        method: name of a learner ("prer", "slda", ...) or its class, which then has the settings that suit the
            scenario; or a learner with settings of your own, such as `PRER(epochs=50)`.
        scenario: "class": nobody gives the task of a sample, and one head grows by new classes. "task": `predict` is
            given the task, which has a head of its own. "domain": the same classes come again in other inputs.
        ensemble: number of seeds that are trained together; their probabilities are averaged.
        random_state: the first seed; None: a random one.
        device: "cpu", "cuda" or "auto".
        validation: share of every class of a lesson that is held out, to measure `validation_score_`; 0: nothing.
        balance: repeat samples of small classes until every class of a lesson has as many as the largest.
        missing: "error", or "median": missing numbers are replaced by the median of the first lesson.
        features: a frozen network that turns images or texts into vectors: "minilm", "efficientnet-lite0", any torch
            module or function that maps a batch to vectors [B, D], or an object with `encode`. A batch is a list of
            texts, or images [B, C, H, W] in [0, 1]. A loaded model needs one of your own again, and refuses another.
        encoder: "identity": vectors are standardised and, if they are long, projected on their principal components;
            "random": on random directions; None: what suits the method.
        verbose: print progress with the time left; or a function that is called with a dictionary for every event.

    Attributes:
        classes_: the labels learned so far, in order of arrival.
        n_features_in_: number of features of the first lesson (tables and vectors).
        feature_names_in_: names of its columns, as strings (frames, and rows with names).
        validation_score_: accuracy on what the last lesson held out; None if nothing was.
        state_digest_: two models with the same digest have learned the same, bit for bit.
        model_: the learned model.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> x, y = load_iris(return_X_y=True)
        >>> model = ContinualClassifier("slda")
        >>> model.partial_fit(x[:100], y[:100]).partial_fit(x[100:], y[100:]).classes_.tolist()
        [0, 1, 2]
        >>> model.predict(x[[0, 75, 149]]).tolist()
        [0, 1, 2]
    """

    def __init__(
        self,
        method: str | type[Learner] | Learner = "prer",
        *,
        scenario: Scenario = "class",
        ensemble: int = 1,
        random_state: Any = 0,
        device: str = "auto",
        validation: float = 0.0,
        balance: bool = False,
        missing: Missing = "error",
        features: Any = None,
        encoder: str | None = None,
        verbose: bool | Observer = False,
    ) -> None:
        self.method = method
        self.scenario = scenario
        self.ensemble = ensemble
        self.random_state = random_state
        self.device = device
        self.validation = validation
        self.balance = balance
        self.missing = missing
        self.features = features
        self.encoder = encoder
        self.verbose = verbose

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, and learn these samples as the first lesson; see `partial_fit`."""
        return self._learn(self._new(), X, y)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, task: int | None = None) -> Self:
        """Learn one more lesson: new classes, more of known ones, or both. If it fails, the model stays as it was.

        Args:
            X: vectors (n, features), images (n, H, W) or (n, H, W, C), a data frame, a torch data set of pairs, or
                rows with names.
            y: a label for each sample, numbers or strings; or the name of the label's column; not needed for pairs.
            classes: the labels that `y` may have; others raise an error. The model knows a class once it has samples.
            task: in the scenario "task", number of the learned task that gets more data, from 1; by default a task
                that knows all labels, or else a new one.
        """
        model = getattr(self, "model_", None) or self._new()
        return self._learn(model, X, y, classes, task)

    def save(self, folder: str | Path) -> Path:
        """Save the model to a folder, which is all that `prer.load` and the commands need; return the folder.

        A crash leaves the previous version or the new one. A folder that contains another model, or one that was taught
        by another process since this model was loaded, is not overwritten.
        """
        check_is_fitted(self, "model_")
        path = Path(folder)
        with files.writing(path):
            known = getattr(self, "_saved", None)
            replaces = known[1] if known and known[0] == path.resolve() else None
            self._saved = path.resolve(), files.save(path, self.model_, replaces)
        return path

    @property
    def state_digest_(self) -> str:
        """sha256 over everything that was learned."""
        check_is_fitted(self, "model_")
        return self.model_.digest

    @classmethod
    def of(cls, model: Model) -> Self:
        """The classifier of a model."""
        learner = replace(model.learner)  # the settings alone
        usual = _recommended(type(learner), model.scenario, bool(model.reading.extractor))
        made = cls(
            learner.name if learner == usual else learner,
            scenario=model.scenario,
            ensemble=len(model.seeds),
            random_state=model.seeds[0],
            device=model.device,
            missing=model.reading.missing,
            features=model.reading.extractor if model.reading.extractor in NAMES else None,
        )
        return made._with(model)

    def _with(self, model: Model) -> Self:
        """Set the attributes of a model."""
        self.model_, self.classes_ = model, np.array(model.answers())
        self.validation_score_ = model.lessons[-1]["held_out"] if model.lessons else None
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier `fit`
            vars(self).pop(name, None)
        if len(model.reading.shape) == 1 and not model.reading.extractor:
            self.n_features_in_ = len(model.reading.columns) or model.reading.shape[0]
        if model.reading.columns:
            self.feature_names_in_ = np.array(model.reading.columns, dtype=object)
        return self

    def _new(self) -> Model:
        """A model that has learned nothing."""
        method = find(self.method) if isinstance(self.method, str) else self.method
        if not isinstance(method, Learner) and not (isinstance(method, type) and issubclass(method, Learner)):
            raise InputError(f"method={shown(method, 40)}: give the name of a learner, its class, or a learner")
        own: dict[str, Any] = {} if self.encoder is None else {"encoder": self.encoder}
        if isinstance(method, Learner):
            learner = replace(method, **own)
        else:
            learner = _recommended(method, self.scenario, self.features is not None, own)
        first = self.random_state
        if not isinstance(first, (int, np.integer)):
            try:
                first = int(check_random_state(first).randint(2**31 - 1 - MOST_SEEDS))
            except ValueError:
                first = -1
        if first < 0:
            raise InputError(f"random_state={self.random_state!r}: give a number of 0 or more, a RandomState, or None")
        if not isinstance(self.ensemble, (int, np.integer)) or not 1 <= self.ensemble <= MOST_SEEDS:
            raise InputError(f"ensemble={self.ensemble!r}: give a whole number from 1 to {MOST_SEEDS}")
        return Model(learner, range(first, first + self.ensemble), self.device, self.scenario)

    def _learn(self, model: Model, X: Any, y: Any, classes: Any = None, task: int | None = None) -> Self:
        if self.missing not in get_args(Missing):
            raise InputError(f"missing={self.missing!r}: choose one of {', '.join(get_args(Missing))}")
        if not isinstance(self.validation, numbers.Real):
            raise InputError(f"validation={self.validation!r}: give a share, such as 0.1, or 0 to hold out nothing")
        if self.balance not in (True, False):
            raise InputError(f"balance={self.balance!r}: give True or False")
        data = self._lesson(model, X, y)
        labels = data.y
        if classes is not None:
            named = {str(label) for label in np.asarray(classes).tolist()}
            extra = next((label for label in labels.tolist() if str(label) not in named), None)
            if extra is not None:
                raise InputError(f"class {extra!r} is in y, but not in classes; add it, or leave classes out")
        how = {"validation": self.validation, "balance": self.balance, "task": task, "begin": self._observer(model)}
        taught = teach(model, data, **how)
        self._with(model)  # before the warnings, which may be errors
        for said in taught.warnings:
            warnings.warn(said, stacklevel=3)
        return self

    def _observer(self, model: Model) -> Callable[[Task], Observer]:
        if callable(self.verbose):
            return lambda task: self.verbose
        if not self.verbose:
            return lambda task: lambda event: None
        return lambda task: Lines(task.index + 1, model.learner.phases(*task.size))

    # -- reading -------------------------------------------------------------------------------------------------

    def _lesson(self, model: Model, X: Any, y: Any) -> Data:
        """Validated samples and labels of a lesson."""
        extractor = self._extractor(model)
        if extractor is not None:
            if self.missing != "error":
                raise InputError(f"missing={self.missing!r} has no effect with features; leave it out")
            return extracted(self._raw(model, X, y, extractor), extractor, progress=self._progress)
        how = {"missing": self.missing, "known": model.reading if model.tasks else None}
        if y is None or isinstance(y, str):  # pairs, rows with names, or a frame with its label
            data = _with_labels(X, y, **how)
            labels = data.y
        elif _is_array(X):
            labels = _labels(y)
            data = self._vectors(_array(X, self), labels, how["known"])
        else:  # the labels may be negative, which other sources refuse
            labels = _labels(y)
            codes = np.unique(labels, return_inverse=True)[1]
            data = (of_frame if is_frame(X) else as_data)(X, codes, **how)
        x = as_samples(data.x, reading=data.reading)
        x = how["known"].arranged(x, data.reading) if how["known"] else x
        if len(x) != len(labels):
            what = f"Found input variables with inconsistent numbers of samples: {[len(x), len(labels)]}"
            raise InputError(f"{what}; give one label for each sample")
        return data._replace(x=x, y=labels)

    def _extractor(self, model: Model) -> Extractor | None:
        """What computes the features of this model."""
        if model.tasks:
            return extractor_of(model.reading, self.features, model.device)
        return None if self.features is None else as_extractor(self.features, model.device)

    def _raw(self, model: Model, X: Any, y: Any, extractor: Extractor) -> Data:
        """Samples and labels of a lesson before their features are computed."""
        known = model.reading.before
        if y is not None and not isinstance(y, str):
            data = self._unlabelled(X, model, extractor)._replace(y=_labels(y))
            if len(data.x) != len(data.y):
                what = f"X has {len(data.x)} samples and y has {len(data.y)} labels"
                raise InputError(f"{what}; give one label for each sample")
        elif is_frame(X):
            data = _of_frame(X, Asked(y or "", known=known if model.tasks else None, text="", ways=PYTHON))
        else:
            data = _with_labels(X, y, names=_names(extractor), size=known.size or extractor.size)
        if data.reading.columns:
            raise InputError("a feature extractor takes no named numbers; give X as an array (n, features), and y")
        own = {key: getattr(known, key) or getattr(data.reading, key) for key in ("label", "text")}
        return data._replace(reading=replace(known, **own))

    def _unlabelled(self, X: Any, model: Model, extractor: Extractor) -> Data:
        """Samples without labels, before their features are computed: texts, or images or vectors as an array."""
        known = model.reading.before
        if is_frame(X):
            asked = Asked(known=known if model.tasks else None, learning=False, text="", ways=PYTHON)
            return _of_frame(X, asked)._replace(y=np.empty(0))
        x = X.to_numpy() if hasattr(X, "to_numpy") else X  # a series
        if isinstance(x, str) or hasattr(x, "getbands"):
            kind = "text" if isinstance(x, str) else "image"
            raise InputError(f"X is one {kind}; give a list of {kind}s")
        if isinstance(x, (list, tuple)) and not x:
            raise InputError("X is empty; give at least one sample")
        if not is_texts(x) and not _is_array(x):
            x = samples_of(x, Reading(), _names(extractor), known.size or extractor.size)
        return Data(x if is_texts(x) else _array(x, self), np.empty(0), reading=known)

    def _progress(self, what: str, done: int, total: int, unit: str = "bytes") -> None:
        if self.verbose is True:
            counted(what, done, total, unit)

    def _vectors(self, x: np.ndarray, labels: np.ndarray, known: Reading | None) -> Data:
        """Vectors or images without names."""
        if known is None:
            data = Data(x, labels)
            return with_medians(data) if self.missing == "median" and x.ndim == 2 else data
        self._check_features(x)
        return Data(x, labels, reading=known)

    def _samples(self, X: Any) -> Any:
        """Samples to predict."""
        check_is_fitted(self, "model_")
        if (extractor := self._extractor(self.model_)) is not None:
            data = self._unlabelled(X, self.model_, extractor)._replace(reading=self.model_.reading.before)
            return extracted(data, extractor, progress=self._progress).x
        if is_frame(X):
            return X
        if not _is_array(X):
            return samples_of(X, self.model_.reading)
        x = _array(X, self)
        self._check_features(x)
        return x

    def _check_features(self, x: np.ndarray) -> None:
        """Compare the number of features of vectors with that of the first lesson, in scikit-learn's words."""
        known = self.model_.reading
        if x.ndim == 2 and len(known.shape) == 1:
            if x.shape[1] != self.n_features_in_:
                what = (
                    f"X has {x.shape[1]} features, but ContinualClassifier is expecting {self.n_features_in_} features"
                )
                raise InputError(f"{what} as input; give the features of the first lesson")
            if known.categories:
                raise InputError(
                    "the model has learned a table with columns of text; give a data frame with its columns"
                )
            if known.columns:
                what = "X does not have valid feature names, but ContinualClassifier was fitted with feature names"
                warnings.warn(f"{what}; its columns are taken in the order of the first lesson", stacklevel=4)

    # -- predicting ----------------------------------------------------------------------------------------------

    def predict(self, X: Any, task: int | None = None) -> np.ndarray:
        """The most probable label of each sample [n].

        Args:
            X: samples as in `partial_fit`; the columns of a frame may be in any order.
            task: number of the task of the samples, from 1; in the scenario "class" it limits the answers to the
                classes of that lesson.
        """
        return self._predict(self._samples(X), task)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each of `classes_` [n, K], averaged over the seeds."""
        p = np.exp(self._log_probabilities(self._samples(X)))
        return p / p.sum(1, keepdims=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Logarithm of these probabilities [n, K]; for two classes, the difference of second and first [n]."""
        log = self._log_probabilities(self._samples(X))
        return log[:, 1] - log[:, 0] if log.shape[1] == 2 else log

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, task: int | None = None) -> float:
        """Share of samples that are predicted correctly. A class that was not learned raises an error."""
        check_is_fitted(self, "model_")
        if y is None or isinstance(y, str):
            extractor = self._extractor(self.model_)
            if extractor is not None:
                data = extracted(self._raw(self.model_, X, y, extractor), extractor, progress=self._progress)
            else:
                data = _with_labels(X, y, known=self.model_.reading)
            x, labels = self.model_.reading.arranged(data.x, data.reading), data.y
        else:
            x, labels = self._samples(X), _labels(y)
        if len(x) != len(labels):
            raise InputError(f"X has {len(x)} samples and y has {len(labels)} labels; give one label for each sample")
        unknown = next((v for v in labels.tolist() if str(v) not in set(map(str, self.classes_.tolist()))), None)
        if unknown is not None:
            raise InputError(f"the model has not learned class {unknown!r}; teach it first, or leave out these samples")
        return float(np.average(self._predict(x, task).astype(str) == labels.astype(str), weights=sample_weight))

    def sample(self, label: Label, n: int = 16, random_state: int = 0) -> np.ndarray:
        """Generate samples of a class from memory alone: images (n, H, W[, C]) as bytes, or vectors (n, features).

        Args:
            label: the class.
            n: number of samples.
            random_state: another number gives other samples.
        """
        check_is_fitted(self, "model_")
        made = self.model_.sample(label, n, noise_seed=random_state).cpu().numpy()
        if made.ndim == 2:
            return made
        return made[:, 0] if made.shape[1] == 1 else np.moveaxis(made, 1, -1)

    def _predict(self, x: Any, task: int | None) -> np.ndarray:
        """The most probable label of each sample, given what `_samples` returns."""
        return np.array(self.model_.answers(task))[self._log_probabilities(x, task).argmax(1)]

    def _log_probabilities(self, x: Any, task: int | None = None) -> np.ndarray:
        """Logarithm of the mean probability of each of the labels that are asked for [n, K]."""
        each = self.model_.log_probabilities(x, task)
        return (each.logsumexp(0) - math.log(len(each))).cpu().numpy()

    # -- scikit-learn --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Plain values, so that a classifier can be copied and sent to other processes."""
        state = super().__getstate__().copy()
        model = state.pop("model_", None)
        if model is not None:
            arrays = {name: tensor.numpy() for name, tensor in plain.tensors(model).items()}
            state["_plain"] = json.dumps(plain.about(model)), arrays, model.device
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a copy."""
        state = dict(state)
        model = state.pop("_plain", None)
        super().__setstate__(state)
        if model is not None:
            about, arrays, device = model
            tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
            self.model_ = plain.model_of(json.loads(about), tensors, device)


def load(folder: str | Path, device: str = "auto", features: Any = None) -> ContinualClassifier:
    """Load a saved model, whatever wrote the folder: `save`, `prer teach`, or a run.

    Args:
        folder: folder of a model, or of a finished run.
        device: "cpu", "cuda" or "auto".
        features: the feature extractor of the model, if it is one of your own; another one is refused.
    """
    path = files.inner(Path(folder))
    model, version = files.load_version(path, as_device(device))
    made = ContinualClassifier.of(model)
    made._saved = path.resolve(), version
    if features is not None:
        extractor_of(model.reading, features, model.device)  # refuses another one
        made.features = features
    return made


def _recommended(
    kind: type[Learner], scenario: Scenario, features: bool = False, own: Mapping[str, Any] = MappingProxyType({})
) -> Learner:
    """A learner with the settings that suit the scenario, and the user's own, on any data or on features."""
    return build(kind, recommended("", kind.name, scenario, features)["learner"] | dict(own), "learner", {})


def _names(extractor: Extractor) -> tuple[str, ...]:
    """Names under which rows with names may hold a sample for this extractor."""
    return {"texts": rows.TEXTS, "images": rows.SAMPLES}.get(extractor.inputs, (*rows.SAMPLES, *rows.TEXTS))


def _of_frame(frame: Any, asked: Asked) -> Data:
    """Texts of a frame, and their labels if it has any."""
    names = [str(name) for name in frame.columns]
    check_names(names)
    columns = [frame[name].to_numpy().tolist() for name in frame.columns]
    if len(frame) and not any(isinstance(value, str) for column in columns for value in column[:1]):
        raise InputError("the frame holds no texts; for numbers, give X as an array (n, features), and y")
    return of_rows(names, zip(*columns, strict=True), asked, as_labels)


def _with_labels(x: Any, y: str | None, **how: Any) -> Data:
    """Read samples that come with their labels: pairs, rows with names, or a frame with its label."""
    if _is_array(x):
        raise InputError(
            f"ContinualClassifier requires y to be passed, but the target y is {y!r}; give a label for each sample"
        )
    return as_data(x, y, **how)


def _is_array(x: Any) -> bool:
    """Whether this is an array, or what scikit-learn takes for one."""
    if hasattr(x, "__array__") or hasattr(x, "toarray"):
        return not is_frame(x) and not hasattr(x, "getbands")
    return isinstance(x, (list, tuple)) and (
        not x or not (hasattr(x[0], "getbands") or isinstance(x[0], (tuple, dict)))
    )


def _array(x: Any, estimator: Any) -> np.ndarray:
    """A numeric array; the errors are scikit-learn's."""
    if is_texts(x):
        raise InputError(TEXTS)
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    try:
        how: dict[str, Any] = {"dtype": "numeric", "ensure_all_finite": False, "allow_nd": True}
        return check_array(x, estimator=estimator, **how)
    except ValueError as error:  # scikit-learn says what to do only if a vector is given, and shows it
        said = [line for line in str(error).splitlines() if line[:1].isalpha() and not line.startswith("array=")]
        do = said[1:] or ["give numbers as vectors (n, features), or as images (n, H, W) or (n, H, W, C)"]
        raise InputError("; ".join(line.rstrip(".:") for line in (*said[:1], *do))) from None


def _labels(y: Any) -> np.ndarray:
    """Labels as whole numbers or texts."""
    y = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
    if isinstance(y, (list, tuple)):
        y = np.array(y, dtype=object)  # otherwise NumPy makes texts of numbers among texts
    try:
        y = column_or_1d(y, warn=True)
        with np.errstate(invalid="ignore"):  # it casts NaN
            if y.dtype.kind != "O":
                check_classification_targets(y)
    except ValueError as error:
        said = str(error).split(". ")[0].rstrip(".")
        raise InputError(f"{said}; give a whole number or a text for each sample") from None
    return as_labels(y, negative=True)
