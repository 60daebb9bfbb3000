"""The stream of an experiment: every kind from a file, what each setting does, and what is refused."""

import numpy as np
import pytest
import torch
from support.data_files import pixels, write_idx
from support.data_sets import empty_folder, put, shrink

from prer.address import Address
from prer.errors import InputError
from prer.runs.experiment import Experiment
from prer.streams.config import StreamConfig, load


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)

    def save(name, *shape, labels=4, dtype=np.uint8):
        x = rng.integers(0, 256, (40, *shape)).astype(dtype)
        np.savez(tmp_path / f"{name}.npz", x=x, y=np.arange(40) % labels)
        return str(tmp_path / f"{name}.npz")

    return save


def build(*settings):
    return Experiment.parse({}, settings).stream.build()


def test_classes_are_split_by_label_in_a_given_order_or_in_a_random_one(files):
    data = f"stream.data={files('a', 8, 8)}"
    assert [t.labels for t in build(data)] == [(0, 1), (2, 3)]
    assert [t.labels for t in build(data, "stream.order=[3, 0, 2, 1]")] == [(3, 0), (2, 1)]
    assert [t.labels for t in build(data, "stream.tasks=[[3, 1], [2, 0]]")] == [(3, 1), (2, 0)]
    shuffled = [
        tuple(t.labels for t in build(data, "stream.shuffle=true", f"stream.shuffle_seed={n}")) for n in range(9)
    ]
    assert len(set(shuffled)) > 3
    assert shuffled[2] == tuple(t.labels for t in build(data, "stream.shuffle=true", "stream.shuffle_seed=2"))


def test_permuted_and_rotated_streams_have_so_many_tasks(files):
    data = f"stream.data={files('a', 8, 8)}"
    permuted = build(data, "stream.kind=permuted", "stream.count=3", "stream.shuffle_seed=1")
    rotated = build(data, "stream.kind=rotated", "stream.count=3", "stream.degrees=360")
    assert [len(permuted), len(rotated)] == [3, 3]
    assert torch.equal(rotated[1].transformed(rotated[1].x), rotated[1].x.flip(-1, -2))
    same = build(data, "stream.kind=permuted", "stream.count=3")
    assert not torch.equal(permuted[1].transformed(permuted[1].x), same[1].transformed(same[1].x))


def test_domains_have_one_head_one_size_and_one_number_of_channels(files):
    grey, colour = files("grey", 10, 10), files("colour", 12, 12, 3)
    stream = build(f"stream.data={grey}", "stream.kind=domain", f'stream.domains=["{colour}"]', "stream.size=16")
    assert [task.head for task in stream] == [0, 0]
    assert stream.shape == (3, 16, 16)
    assert torch.equal(stream[0].x[:, 0], stream[0].x[:, 2])
    assert not torch.equal(stream[1].x[:, 0], stream[1].x[:, 2])


def test_images_are_brought_to_a_size(files):
    small = files("small", 8, 10)
    padded = build(f"stream.data={small}", "stream.size=12", "stream.fit=pad")
    x = np.load(small)["x"]
    assert np.array_equal(padded[0].x[:, 0, 2:10, 1:11].numpy(), x)
    assert build(f"stream.data={small}", "stream.size=12").shape == (1, 12, 12)


def test_moves_come_from_the_settings(files):
    task = build(f"stream.data={files('a', 8, 8)}", "stream.crop=2", "stream.flip=true")[0]
    assert (task.moves.crop, task.moves.flip) == (2, True)
    assert build(f"stream.data={files('a', 8, 8)}")[0].moves.draw(torch.zeros(1, 1, 1), Address((0,))).shape[-1] == 0


def test_a_given_test_part_is_used_or_poured_together(tmp_path):
    x, y = np.arange(120, dtype=np.float32).reshape(40, 3), np.arange(40) % 4
    np.savez(tmp_path / "p.npz", x_train=x, y_train=y, x_test=x[:8] + 500, y_test=y[:8])
    given = build(f"stream.data={tmp_path / 'p.npz'}")
    assert [task.test_rows([0]).shape[1] for task in given] == [4, 4]
    assert (given[0].x[given[0].test_rows([0])[0]] >= 500).all()
    poured = build(f"stream.data={tmp_path / 'p.npz'}", "stream.resplit=0.5")
    assert [task.test_rows([0]).shape[1] for task in poured] == [12, 12]


REFUSED = {
    "no second domain": (["stream.kind=domain"], "needs a second domain"),
    "domains of a split": (['stream.domains=["digits"]'], "stream.domains applies only with .*'domain'"),
    "an order of permuted": (["stream.kind=permuted", "stream.order=[1, 0]"], "stream.order applies only"),
    "a shuffled rotation": (["stream.kind=rotated", "stream.shuffle=true"], "stream.shuffle applies only"),
    "tasks and an order": (
        ["stream.tasks=[[0, 1]]", "stream.order=[0, 1]"],
        "stream.order applies only with .* without stream.tasks",
    ),
    "a count of a split": (["stream.count=3"], "stream.count applies only with"),
    "degrees of permuted": (["stream.kind=permuted", "stream.degrees=90"], "stream.degrees applies only"),
    "a seed of nothing": (["stream.shuffle_seed=3"], "stream.shuffle_seed applies only with stream.shuffle"),
    "a fit without a size": (["stream.fit=pad"], "stream.fit applies only with stream.size"),
    "a label of no table": (["stream.label=x"], "only to tables"),
    "missing values of no table": (["stream.missing=median"], "stream.missing='median' applies only to tables"),
    "an unknown way to fill": (["stream.missing=mean"], "choose one of error, median"),
    "a crop of everything": (["stream.crop=8"], "less than the 8 pixels"),
    "a size without memory": (["stream.size=4096"], "do not fit into memory"),
    "an unknown kind": (["stream.kind=rotate"], "choose one of split, permuted, rotated, domain"),
    "one task": (["stream.kind=permuted", "stream.count=1"], "take from 2"),
    "an order with a class that is not there": (["stream.order=[0, 77]"], "class 77 is requested"),
    "a size without end": (["stream.size=100000"], "take from 0 to 4096"),
}


@pytest.mark.parametrize(("settings", "said"), REFUSED.values(), ids=REFUSED)
def test_settings_without_effect_or_sense_are_refused(settings, said):
    with pytest.raises(InputError, match=said):
        build("stream.data=digits", *settings)


def test_domains_that_do_not_fit_together_are_refused(files):
    first = f"stream.data={files('first', 8, 8)}"
    for other, said in {
        files("larger", 9, 9): r"different shapes \(1x8x8, 1x9x9\); set stream.size",
        files("more", 8, 8, labels=5): "domain 2 has class 4, which the first domain does not have",
    }.items():
        with pytest.raises(InputError, match=said):
            build(first, "stream.kind=domain", f'stream.domains=["{other}"]')


def test_vectors_have_no_size(files):
    with pytest.raises(InputError, match="contains vectors"):
        build(f"stream.data={files('v', 5, dtype=np.float32)}", "stream.size=16")


def test_data_is_there_only_if_all_domains_are(files):
    here = files("a", 8, 8)
    assert StreamConfig(data=here).is_there()
    assert StreamConfig(data=here, domains=(here,)).is_there()
    assert not StreamConfig(data=here, domains=("nowhere.npz",)).is_there()


@pytest.mark.parametrize("shape", [(16, 16, 12), (12, 12, 2), (10, 16, 3)])
def test_many_channels_stay_channels_whatever_is_done(files, shape):
    data = files("odd", *shape)
    plain = build(f"stream.data={data}")
    assert plain.shape == (shape[2], *shape[:2])
    assert build(f"stream.data={data}", "stream.size=16").shape == (shape[2], 16, 16)
    domain = build(f"stream.data={data}", "stream.kind=domain", f'stream.domains=["{data}"]')
    assert torch.equal(domain[1].x, plain[0].x)


def test_dark_pictures_may_be_made_smaller(tmp_path):
    x = np.zeros((8, 64, 64), np.uint8)
    x[:, 0, 0] = 255
    np.savez(tmp_path / "dark.npz", x=x, y=np.arange(8) % 2)
    assert build(f"stream.data={tmp_path / 'dark.npz'}", "stream.size=8").shape == (1, 8, 8)


def test_an_empty_name_is_no_folder():
    with pytest.raises(InputError, match="neither a file nor a known data set"):
        build("stream.data=")


def test_a_finished_run_does_not_fetch_its_data_to_be_shown(monkeypatch, tmp_path):
    empty_folder(monkeypatch, tmp_path)
    shrink(monkeypatch)
    assert StreamConfig(data="digits").is_there() and not StreamConfig(data="mnist").is_there()
    put("mnist")
    assert StreamConfig(data="mnist").is_there()


# -- data files -------------------------------------------------------------------------------------------------------


X, Y = np.arange(60, dtype=np.float32).reshape(20, 3), np.arange(20) % 4


def streamed(path, **options):
    return StreamConfig(data=str(path), **options).build()


def test_an_npz_of_x_and_y_is_a_stream(tmp_path):
    np.savez(tmp_path / "my data.npz", x=X, y=Y, more=np.array([object()]))  # what is not asked for is not read
    stream = streamed(tmp_path / "my data.npz")
    assert (stream.name, stream.shape, len(stream)) == ("my data.npz", (3,), 2)
    assert stream[0].test_rows([0]).shape == (1, 2)
    assert len(streamed(tmp_path / "my data.npz", classes_per_task=4)) == 1
    assert [task.labels for task in streamed(tmp_path / "my data.npz", tasks=((3, 0),))] == [(3, 0)]


def test_an_npz_with_a_test_part_uses_it_unless_told_to_resplit(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=X, y_train=Y, x_test=X[:8], y_test=Y[:8])
    assert sorted(streamed(tmp_path / "a.npz")[0].test_rows([0])[0].tolist()) == [20, 21, 24, 25]
    assert streamed(tmp_path / "a.npz", resplit=0.5)[0].test_rows([0]).shape == (
        1,
        8,
    )  # 4 of 7 of each class


def test_the_same_npz_gives_the_same_as_its_arrays(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x_train=X, y_train=Y)
    task = streamed(tmp_path / "a.npz")[0]
    assert np.array_equal(task.x.numpy(), X)
    assert task.y.tolist() == (Y % 2).tolist()  # the place within its task


def test_the_digits_are_there_without_a_file():
    stream = StreamConfig().build()
    assert (stream.name, stream.shape, len(stream)) == ("digits", (1, 8, 8), 5)
    assert (len(stream[0].x), int(stream[0].x.min()), int(stream[0].x.max())) == (1797, 0, 255)


@pytest.mark.parametrize("data", ["nowhere.npz", "mnits", "a\x00b", "~nobody-has-this-name/x.npz", "a" * 300])
def test_missing_data_is_refused_with_the_names_that_are_known(data):
    with pytest.raises(InputError, match="is neither a file nor a known data set"):
        streamed(data)


def test_a_bad_data_file_is_refused_in_one_sentence(tmp_path):
    np.savez(tmp_path / "bad.npz", x=X, y=Y[:5])
    with pytest.raises(InputError, match=r"bad\.npz: x has 20 samples and y has 5 labels; [^\n]+$"):
        streamed(tmp_path / "bad.npz")


def test_load_gives_the_parts_of_a_path(tmp_path):
    (x, y), (x2, y2) = (pixels(7, 9, 8), np.arange(7)), (pixels(3, 9, 8), np.arange(3) + 4)
    write_idx(tmp_path, "train-", x, y)
    write_idx(tmp_path, "t10k-", x2, y2)
    data = load(str(tmp_path))
    assert np.array_equal(data.x, np.concatenate([x, x2])[:, None])
    assert data.y.tolist() == [*y.tolist(), *y2.tolist()]
    assert data.tests == len(y2)


def test_texts_and_missing_values_of_a_table(tmp_path):
    rows = ["20,Rome,x", ",Oslo,y", "40,,x", "30,Rome,y"] * 5
    (tmp_path / "a.csv").write_text("age,city,kind\n" + "\n".join(rows))
    stream = build(f"stream.data={tmp_path / 'a.csv'}", "stream.missing=median")
    assert stream.shape == (3,) and stream.reading.features == ("age", "city=Oslo", "city=Rome")
    assert stream[0].x[:4].tolist() == [[20, 0, 1], [30, 1, 0], [40, 0, 0], [30, 0, 1]]
    with pytest.raises(InputError, match=r"row 2, column 'age': a value is missing; .* set stream\.missing=median"):
        build(f"stream.data={tmp_path / 'a.csv'}")


def test_domains_of_vectors_may_differ_in_their_number_of_samples(tmp_path):
    for name, n in (("a", 10), ("b", 30)):
        (tmp_path / f"{name}.csv").write_text("a,kind\n" + "1,x\n2,y\n" * n)
    domains = ["stream.kind=domain", f'stream.domains=["{tmp_path / "b.csv"}"]']
    assert [len(task.x) for task in build(f"stream.data={tmp_path / 'a.csv'}", *domains)] == [20, 60]


def test_all_domains_are_encoded_as_the_first(tmp_path):
    for name, rows in (("a", ["1,Rome,x", "2,Oslo,y", ",Rome,x", "5,Oslo,y"]), ("b", [",Rome,x", "9,Bern,y"])):
        (tmp_path / f"{name}.csv").write_text("age,city,kind\n" + "\n".join(rows * 5))
    domains = ["stream.kind=domain", f'stream.domains=["{tmp_path / "b.csv"}"]', "stream.missing=median"]
    with pytest.warns(UserWarning, match="column 'city' holds unknown texts"):
        stream = build(f"stream.data={tmp_path / 'a.csv'}", *domains)
    assert stream[1].x[:2].tolist() == [[2, 0, 1], [9, 0, 0]]


def test_how_missing_values_are_treated_belongs_to_an_experiment_only_if_it_is_set():
    usual = Experiment.parse({}, ["stream.data=digits"])
    assert usual.hash == Experiment.parse({}, ["stream.data=digits", "stream.missing=error"]).hash
    assert usual.hash != Experiment.parse({}, ["stream.data=digits", "stream.missing=median"]).hash
