"""Data sets by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from prer.data.entry import Entry, Form, Progress, cifar_batches, decoded, idx_files, served, silent
from prer.errors import InputError
from prer.text import did_you_mean

if TYPE_CHECKING:  # listing the data sets does not wait for numpy and torch
    from prer.data.arrays import Data


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TORONTO = "https://www.cs.toronto.edu/~kriz/"
STANFORD = "http://ufldl.stanford.edu/housenumbers/"

DIGITS = Entry(
    name="digits",
    title="handwritten digits, small",
    licence="CC BY 4.0",
    source="https://scikit-learn.org/stable/datasets/toy_dataset.html",
    shape=(1, 8, 8),
    train=1797,
    test=0,
)
MNIST = Entry(
    name="mnist",
    title="handwritten digits",
    licence="CC BY-SA 3.0 (by common statement)",
    source="LeCun, Cortes, Burges: http://yann.lecun.com/exdb/mnist/",
    shape=(1, 28, 28),
    train=60_000,
    test=10_000,
    folders=("MNIST/raw",),
    files=decoded(
        idx_files(
            ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
            (9912422, 28881, 1648877, 4542),
            (
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
        (47040016, 60008, 7840016, 10008),
    ),
)
KMNIST = Entry(
    name="kmnist",
    title="handwritten Japanese letters",
    licence="CC BY-SA 4.0",
    source="KMNIST Dataset (created by CODH), doi:10.20676/00000341",
    shape=(1, 28, 28),
    classes=_words("o ki su tsu na ha ma ya re wo"),
    train=60_000,
    test=10_000,
    folders=("KMNIST/raw",),
    files=idx_files(
        # The same host by HTTP and HTTPS; no other mirror is known.
        ("http://codh.rois.ac.jp/kmnist/dataset/kmnist/", "https://codh.rois.ac.jp/kmnist/dataset/kmnist/"),
        (18165135, 29497, 3041136, 5120),
        (
            "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
        ),
    ),
)
FASHION_MNIST = Entry(
    name="fashion_mnist",
    title="images of clothing",
    licence="MIT",
    source="https://github.com/zalandoresearch/fashion-mnist",
    shape=(1, 28, 28),
    classes=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    train=60_000,
    test=10_000,
    folders=("FashionMNIST/raw",),
    files=idx_files(
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        ),
        (26421880, 29515, 4422102, 5148),
        (
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
)
SVHN = Entry(
    name="svhn",
    title="house numbers, cropped digits",
    licence="non-commercial use only",
    source="Netzer et al. 2011: http://ufldl.stanford.edu/housenumbers/",
    shape=(3, 32, 32),
    train=73_257,
    test=26_032,
    folders=("SVHN", "."),
    files=(
        served(
            *(STANFORD, "train_32x32.mat", 182040794),
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        ),
        served(
            *(STANFORD, "test_32x32.mat", 64275384),
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        ),
    ),
)
CIFAR10 = Entry(
    name="cifar10",
    title="small photographs, 10 classes",
    licence="none stated; cite Krizhevsky 2009",
    source="Krizhevsky 2009: https://www.cs.toronto.edu/~kriz/cifar.html",
    shape=(3, 32, 32),
    classes=_words("airplane automobile bird cat deer dog frog horse ship truck"),
    train=50_000,
    test=10_000,
    folders=("CIFAR10", "."),
    files=(
        served(
            *(TORONTO, "cifar-10-binary.tar.gz", 170052171),
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    unpacked=(
        Form(
            "cifar-10-batches-bin",
            cifar_batches(
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
        ),
    ),
)
CIFAR100 = Entry(
    name="cifar100",
    title="small photographs, 100 classes",
    licence="none stated; cite Krizhevsky 2009",
    source="Krizhevsky 2009: https://www.cs.toronto.edu/~kriz/cifar.html",
    shape=(3, 32, 32),
    classes=_words(
        """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
        castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
        elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
        man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
        pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
        skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
        tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
        """
    ),
    train=50_000,
    test=10_000,
    folders=("CIFAR100", "."),
    files=(
        served(
            *(TORONTO, "cifar-100-binary.tar.gz", 168513733),
            "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        ),
    ),
)

CATALOGUE: dict[str, Entry] = {
    entry.name: entry for entry in (DIGITS, MNIST, KMNIST, FASHION_MNIST, SVHN, CIFAR10, CIFAR100)
}


def known(name: str) -> Entry:
    """Return the data set of this name."""
    if isinstance(name, str) and name in CATALOGUE:
        return CATALOGUE[name]
    raise InputError(f"unknown data set {name!r}{did_you_mean(str(name), CATALOGUE)}")


def is_here(name: str) -> bool:
    """Whether a data set can be read without a download."""
    entry = known(name)
    return entry.built_in or entry.local_form() is not None


def load_named(name: str, progress: Progress = silent) -> Data:
    """Load the samples of a data set; download them first if they are not here."""
    from prer.data.fetch import fetch
    from prer.data.files import read

    entry = known(name)
    if entry.built_in:
        return digits()
    form = entry.local_form() or fetch(entry, progress)
    try:
        data = read(form.path, only=() if form.archive else [file.name for file in form.files])
    except InputError as error:
        raise InputError(f"{error}; to download this data set, run: prer data fetch {name}") from None
    return _with_names(entry, data, form.path)


def _with_names(entry: Entry, data: Data, path: Path) -> Data:
    """Return the data with class names as labels."""
    import numpy as np

    if (len(data.y), data.tests) != (entry.samples, entry.test):
        raise _damaged(entry, path, f"{len(data.y):,} samples, {data.tests:,} of them for testing")
    if not entry.classes:
        return data
    labels = np.asarray(data.y)
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= len(entry.classes):
        raise _damaged(entry, path, f"labels outside 0 to {len(entry.classes) - 1}")
    return data._replace(y=np.array(entry.classes)[labels], order=entry.classes)


def _damaged(entry: Entry, path: Path, what: str) -> InputError:
    return InputError(f"{path} contains {what}, which does not match {entry.name}; see `prer data check {entry.name}`")


def digits() -> Data:
    """The 1,797 digits of 8x8 pixels that come with scikit-learn."""
    import numpy as np
    from sklearn.datasets import load_digits

    from prer.data.arrays import Data

    bunch: Any = load_digits()
    return Data(np.round(bunch.images * (255 / 16)).astype(np.uint8)[:, None], bunch.target)
