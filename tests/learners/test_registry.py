"""The registry: which classes may be registered, plug-in files, entry points, and the checksum of their code."""

import re
import sys
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest
from support.plugins import PULLED, write_plugin

from prer import LWF, Learner, Naive, register
from prer.errors import InputError
from prer.learners import LEARNERS, registry
from prer.learners.registry import check, code_of, find, load_plugin, names, registered
from prer.settings import setting


@pytest.fixture(autouse=True)
def unchanged(monkeypatch):
    """Whatever a test registers is gone after it."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_sources", {})


def make(title="Mine", base=Naive, **content):
    """A new learner class."""
    return dataclass(kw_only=True)(type(title, (base,), {"name": "mine", "__module__": __name__} | content))


def test_ours_are_found_by_name_and_others_are_unknown():
    assert [find(name) for name in LEARNERS] == list(LEARNERS.values())
    with pytest.raises(InputError, match=r"unknown learner 'lfw', did you mean 'lwf'\? \(a learner .* --plugin FILE\)"):
        find("lfw")
    for name in (None, 5, [], "a\x1b[31m"):
        with pytest.raises(InputError, match="unknown learner") as caught:
            find(name)
        assert str(caught.value).isprintable()


def test_a_registered_learner_is_found_and_a_cell_that_runs_twice_replaces_it():
    first = register(make())
    assert find("mine") is first and names()[-1] == "mine"
    again = register(make())
    assert find("mine") is again is not first
    assert register(Naive) is Naive


def test_a_learner_can_be_registered_for_a_while():
    with registered(make()):
        assert find("mine")
    assert "mine" not in names()


@dataclass(kw_only=True)
class NoSetting(Learner):
    name = "no-setting"
    size: int = 5


@dataclass(kw_only=True)
class NoDefault(Learner):
    name = "no-default"
    size: int = field(metadata={"help": "size"})


@dataclass(kw_only=True)
class OutOfRange(Learner):
    name = "out-of-range"
    size: int = setting(0, "size", low=1)


@dataclass(kw_only=True)
class UnknownType(Learner):
    name = "unknown-type"
    size: "Size" = setting(0, "size")  # noqa: F821


@dataclass
class Positional(Learner):
    name = "positional"
    size: int = setting(0, "size")


class NoDataclass(Learner):
    name = "no-dataclass"


WRONG = [
    (Learner, "Learner is not a subclass of prer.Learner"),
    (dict, "dict is not a subclass"),
    ("naive", "'naive' is not a subclass"),
    (make(name="My learner"), "Mine has the name 'My learner'; give it one of a-z, 0-9 and -"),
    (make(name=None), "Mine has the name None"),
    (make(name=[]), r"Mine has the name \[\]"),
    (make(base=LWF, name="lwf"), "Mine has the name 'lwf', which prer.learners.lwf:LWF has; give it another name"),
    (NoDataclass, r"NoDataclass is not a keyword-only dataclass; write @dataclass\(kw_only=True\) above the class"),
    (Positional, "Positional is not a keyword-only dataclass"),
    (
        NoSetting,
        r"'size' of NoSetting has no default or no help text; write size = setting\(default, 'help text in one line'\)",
    ),
    (NoDefault, "'size' of NoDefault has no default or no help text"),
    (OutOfRange, "OutOfRange.size=0: take 1 or more"),
    (UnknownType, "UnknownType have a type that cannot be checked: name 'Size' is not defined"),
]


@pytest.mark.parametrize(("cls", "words"), WRONG, ids=lambda value: getattr(value, "__name__", None))
def test_what_cannot_be_a_learner_is_refused_with_the_reason(cls, words):
    with pytest.raises(InputError, match=words):
        register(cls)
    assert registry._registered == {}


def test_two_classes_cannot_share_a_name():
    register(make())
    with pytest.raises(InputError, match=r"Other has the name 'mine', which .*test_registry:Mine has"):
        check(make("Other"))


# -- plug-in files -----------------------------------------------------------------------------------------------------


def test_a_plugin_registers_the_learners_it_defines_and_no_others(tmp_path):
    more = PULLED.replace("pulled", "other").replace("Pulled(Learner)", "Other(_Base)")
    more += "\n\nfrom prer import Naive\nAgain = Naive\n"
    text = PULLED + "\n\nclass _Base(Learner):\n    pass\n\n" + more.partition("from prer.settings import setting\n")[2]
    found = load_plugin(write_plugin(tmp_path, text=text))
    assert [cls.name for cls in found] == ["pulled", "other"]
    assert names()[len(LEARNERS) :] == ["pulled", "other"]
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.py"]  # no cache beside it


def test_a_plugin_is_compiled_without_the_future_imports_of_the_package(tmp_path):
    (cls,) = load_plugin(write_plugin(tmp_path, text=PULLED.replace("from __future__ import annotations\n", "")))
    assert fields(cls)[-1].type is float


def test_a_plugin_may_be_loaded_again_after_a_change(tmp_path):
    file = write_plugin(tmp_path)
    (before,) = load_plugin(file)
    first = code_of(before)
    write_plugin(tmp_path, text=PULLED.replace("0.1", "0.2"))
    (after,) = load_plugin(str(file))
    assert find("pulled") is after is not before and after().pull == 0.2
    assert code_of(after) != first and re.fullmatch("[0-9a-f]{64}", first)


WRONG_FILES = {
    "missing": (None, r"the plug-in .*mine.py cannot be read: No such file or directory; give a Python file"),
    "empty": ("", "mine.py defines no learner; write a subclass of prer.Learner in it"),
    "imported only": ("from prer import Naive, Learner\n", "mine.py defines no learner"),
    "syntax": ("x = 1\nx = = 2\n", r"mine.py fails in line 2: SyntaxError: invalid syntax"),
    "error": ("\n\n1 / 0\n", "mine.py fails in line 3: ZeroDivisionError: division by zero"),
    "error below": ("import json\n\n\njson.loads('{')\n", "mine.py fails in line 4: JSONDecodeError"),
    "exit": ("import sys\nsys.exit('bye')\n", "mine.py fails in line 2: SystemExit: bye"),
    "no module": ("import nowhere_to_be_found\n", "mine.py fails in line 1: ModuleNotFoundError: No module named"),
    "null": ("x = 1\0", "mine.py fails: (SyntaxError|ValueError): source code string cannot contain null bytes"),
    "wrong class": (PULLED.replace("@dataclass(kw_only=True)\n", ""), "Pulled is not a keyword-only dataclass"),
    "name of ours": (PULLED.replace('"pulled"', '"ewc"'), "Pulled has the name 'ewc', which prer.learners.ewc:EWC has"),
}


@pytest.mark.parametrize("case", WRONG_FILES)
def test_a_wrong_plugin_is_refused_in_one_sentence_and_leaves_nothing(tmp_path, case):
    text, words = WRONG_FILES[case]
    if text is not None:
        write_plugin(tmp_path, text=text)
    before = set(sys.modules)
    with pytest.raises(InputError, match=words):
        load_plugin(tmp_path / "mine.py")
    assert registry._registered == {} == registry._sources
    assert not [name for name in set(sys.modules) - before if "plugin" in name]


def test_a_folder_is_no_plugin(tmp_path):
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        load_plugin(tmp_path)


def test_a_plugin_that_breaks_leaves_the_one_that_was_loaded(tmp_path):
    (before,) = load_plugin(write_plugin(tmp_path))
    with pytest.raises(InputError, match="fails in line"):
        load_plugin(write_plugin(tmp_path, text=PULLED + "\n1 / 0\n"))
    assert find("pulled") is before and sys.modules[before.__module__].Pulled is before


def test_two_plugins_with_the_same_name_are_told_apart(tmp_path):
    load_plugin(write_plugin(tmp_path / "a"))
    with pytest.raises(InputError, match=rf"'pulled', which {tmp_path}/a/mine.py:Pulled has; give it another name"):
        load_plugin(write_plugin(tmp_path / "b"))


# -- installed packages ------------------------------------------------------------------------------------------------


def install(folder, module="their_package", name="pulled", text=PULLED):
    """A package with a learner, as an installer leaves it."""
    write_plugin(folder, f"{module}.py", f"{text}\nprint('imported')\n")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[prer.learners]\n{name} = {module}:Pulled\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder for packages."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield tmp_path / "site"
    sys.modules.pop("their_package", None)


def test_an_entry_point_is_listed_and_imported_only_when_asked_for(site, capsys):
    install(site)
    assert "pulled" in names() and find("naive") is Naive
    with pytest.raises(InputError, match="did you mean 'pulled'"):
        find("puled")
    assert capsys.readouterr().out == "" and "their_package" not in sys.modules
    assert find("pulled").__module__ == "their_package" and find("pulled") is find("pulled")
    assert capsys.readouterr().out == "imported\n"
    assert len(code_of(find("pulled"))) == 64


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"text": "1 / 0"}, "'pulled' of their_package:Pulled cannot be imported: ZeroDivisionError"),
        ({"text": "Pulled = 5"}, "their_package:Pulled is not a learner of the name 'pulled', as its entry point says"),
        ({"text": PULLED.replace('"pulled"', '"other"')}, "is not a learner of the name 'pulled'"),
        ({"text": "class Pulled:\n    name = 'pulled'"}, "Pulled is not a subclass of prer.Learner"),
    ],
)
def test_a_wrong_entry_point_is_refused_with_the_reason(site, options, words):
    install(site, **options)
    with pytest.raises(InputError, match=words):
        find("pulled")


def test_an_entry_point_cannot_replace_one_of_ours(site):
    install(site, name="naive", text="raise AssertionError")
    assert find("naive") is Naive


def test_metadata_in_the_current_folder_does_not_count(tmp_path, monkeypatch):
    install(tmp_path / "here", text="raise AssertionError")
    monkeypatch.chdir(tmp_path / "here")
    for entry in ("", str(Path.cwd()), "."):
        monkeypatch.setattr(sys, "path", [entry, *sys.path])
    assert "pulled" not in names()


# -- the checksum of the code ------------------------------------------------------------------------------------------


def test_the_code_of_a_learner_includes_its_bases_and_ours_have_none(tmp_path):
    assert {code_of(cls) for cls in LEARNERS.values()} == {None}
    codes = set()
    for text in (PULLED, PULLED + "\n# another comment\n"):
        (base,) = load_plugin(write_plugin(tmp_path, text=text))
        codes |= {code_of(base), code_of(make(base=base))}
    assert len(codes) == 4
    assert code_of(make()) == code_of(make("Other"))  # of this file


def test_a_learner_without_source_has_no_checksum():
    cls = make(__module__="nowhere")
    assert code_of(cls) is None
