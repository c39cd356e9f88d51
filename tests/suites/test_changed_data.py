"""The user's files that change while a run goes on: one clear line, and no cell of what they became."""

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tiny
from PIL import Image
from safetensors.torch import save_file
from suites.articles import small as articles
from suites.bam import small as bam
from suites.planted import smallest as planted

from forsooth import api, models
from forsooth.datasets import plain_images, worlds
from forsooth.datasets.voc import ZIP as VOC_ZIP
from forsooth.models import RESIDUAL_SMALL, recipes
from forsooth.progress import Silent
from forsooth.records import UsageError
from forsooth.suites.articles import data as articles_data
from forsooth.suites.bias import data as bias_data
from forsooth.suites.bias import tasks as bias_tasks
from forsooth.suites.bias.stage import Network
from forsooth.suites.planted import data as planted_data
from forsooth.suites.xaitris import data as xaitris_data

CHANGED = (
    "must stay as they are while a run goes on, .* they changed after it was planned, and nothing was kept of them"
)
GONE = "must "  # each reader has its own words for what is not there


def picture(place: Path, dice: np.random.Generator, *, channels: int = 3) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(dice.integers(0, 255, (24, 28, channels), dtype=np.uint8)).save(place)


def photographs(place: Path) -> Path:
    dice = np.random.default_rng(0)
    for k in range(3):
        picture(place / f"{k}.png", dice)
    return place / "0.png"


def classes(place: Path) -> Path:
    dice = np.random.default_rng(0)
    for name in ("one", "two", "three"):
        for k in range(12):
            picture(place / name / f"{k}.png", dice)
    return place / "one" / "0.png"


def scenes_and_objects(place: Path) -> Path:
    dice = np.random.default_rng(0)
    for k in range(12):
        for scene in ("hill", "sea"):
            picture(place / "scenes" / scene / f"{k}.png", dice)
        for kind in ("cat", "dog"):
            picture(place / "objects" / kind / f"{k}.png", dice, channels=4)
    return place / "objects" / "dog" / "3.png"


def documents(place: Path, word: str = "saw") -> Path:
    lines = [f"the {letter} {word} a dog near the house and a {letter} ." for letter in "abcdefghijklmnopqrstuvwxyz"]
    place.write_text("\n".join(2 * lines))
    return place


def table(place: Path) -> Path:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(drawn.normal(size=(200, 4)), columns=list("abcd"))
    frame.assign(label=(frame["a"] > 0).astype(int)).to_csv(place, index=False)
    return place


def another_picture(place: Path) -> None:
    with Image.open(place) as before:
        channels = len(before.getbands())
    picture(place, np.random.default_rng(1), channels=channels)


@dataclass(frozen=True)
class Case:
    """A run of a suite on data of the user's.

    write   makes the data, gives the file that is changed
    change  another of its kind in its place
    forget  what this process remembers of data, so that the next task reads them as another process would
    """

    name: str
    write: Callable[[Path], Path]
    change: Callable[[Path], Any]
    forget: tuple[Callable[[], None], ...]
    asked: dict[str, Any]


CASES = {
    "xaitris": Case(
        "photos",
        photographs,
        another_picture,
        (xaitris_data.dataset.forget,),  # type: ignore[attr-defined]
        {
            "settings": {**tiny.SETTINGS, "backgrounds": ("IMAGENET",)},
            "only": {"scenario": "LIN", "model": "llr"},
            "methods": ["saliency"],
        },
    ),
    "planted": Case(
        "photos",
        classes,
        another_picture,
        (planted_data.dataset.forget, plain_images.base.cache_clear),  # type: ignore[attr-defined]
        {
            "settings": {**planted.TINY, "trainings": 1, "manipulations": ("watermark",), "experiments": ("5.1",)}
            | {"gate": 0.0, "max_p_value": 1.0, "epochs": 1},
            "methods": ["constant"],
        },
    ),
    "bam": Case(
        "world",
        scenes_and_objects,
        another_picture,
        (worlds.world.cache_clear,),
        {
            "settings": {**bam.FEW, "ks": (0.5, 1.0), "scenes": None, "models": ("residual_small",)},
            "methods": ["constant"],
        },
    ),
    "articles": Case(
        "mine.txt",
        documents,
        lambda place: documents(place, "met"),
        (articles_data.dataset.forget,),  # type: ignore[attr-defined]
        {
            "settings": {**articles.TINY, "sizes": (40, 5, 5), "kinds": ("CN",), "epochs": 1, "samples": 2},
            "methods": ["attention"],
            "only": {"model": "attention"},
        },
    ),
    "bias": Case(
        "mine.csv",
        table,
        lambda place: place.write_text(place.read_text().replace("-0.1", "-0.9")),
        (bias_data.dataset.forget,),  # type: ignore[attr-defined]
        {
            "settings": {"samples": 3, "permutations": 4, "trainings": 1},
            "methods": ["gradient_x_input"],
            "only": {"dataset": "mine"},
        },
    ),
}


class Meddling(Silent):
    """Does something once: when the work is planned, or when the first task is done."""

    def __init__(self, deed: Callable[[], object], *, when: str) -> None:
        self.deeds = {when: deed}

    def start(self, total: int, done: int) -> None:
        self.deeds.pop("planned", object)()

    def step(self, name: str) -> None:
        self.deeds.pop("between", object)()


def forget(case: Case) -> None:
    for each in case.forget:
        each()


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest):
    """The suite's case; nothing is remembered before or after."""
    forget(CASES[request.param])
    yield request.param, CASES[request.param]
    forget(CASES[request.param])


def cells(run: Path) -> list[Path]:
    return sorted(run.glob("store/cells/*/*"))


def scores(run: api.Run) -> bytes:
    return (run.folder / "scores.parquet").read_bytes()


def asked(suite: str, case: Case, folder: Path, **words: Any) -> api.Run:
    given = {"data": folder / case.name, "out": folder / "run", "page": False, "progress": Silent()}
    return api.run(suite, **{**case.asked, **given, **words})


def remove(place: Path) -> None:
    """The file, and what lies beside it: one picture less among many is a change, not a loss."""
    if place.is_file():
        place.unlink()
    else:
        shutil.rmtree(place)


def test_data_that_change_after_the_plan_are_kept_under_no_old_name(tmp_path, case):
    suite, known = case
    file = known.write(tmp_path / known.name)
    meddling = Meddling(lambda: known.change(file), when="planned")
    with pytest.raises(UsageError, match=CHANGED):
        asked(suite, known, tmp_path, progress=meddling)
    assert not meddling.deeds and not cells(tmp_path / "run") and not (tmp_path / "run" / "run.json").exists()


def test_data_that_are_gone_after_the_plan_are_one_line(tmp_path, case):
    suite, known = case
    known.write(tmp_path / known.name)
    with pytest.raises(UsageError, match=GONE):
        asked(suite, known, tmp_path, progress=Meddling(lambda: remove(tmp_path / known.name), when="planned"))
    assert not cells(tmp_path / "run")


def test_data_that_change_between_two_tasks(tmp_path, case):
    """What was made of the old data stays; nothing is made of the new. Shared data are those of the plan to the end."""
    suite, known = case
    file = known.write(tmp_path / known.name)

    def deed() -> None:
        known.change(file)
        forget(known)

    words = {"progress": Meddling(deed, when="between")}
    if suite == "xaitris":  # makes its data once for all processes of a run, and they are those of the plan
        made = asked(suite, known, tmp_path, **words)
        known.write(tmp_path / "fresh" / known.name)
        forget(known)
        fresh = asked(suite, known, tmp_path / "fresh")
        pd.testing.assert_frame_equal(*(run.rows.drop(columns=["cell", "seconds"]) for run in (made, fresh)))
        return
    with pytest.raises(UsageError, match=CHANGED):
        asked(suite, known, tmp_path, **words)
    assert len(cells(tmp_path / "run")) == 1


@pytest.mark.parametrize("suite", ["xaitris", "articles"])
def test_processes_find_it_too(tmp_path, suite):
    known = CASES[suite]
    file = known.write(tmp_path / known.name)
    with pytest.raises(UsageError, match=CHANGED):
        asked(suite, known, tmp_path, workers=2, progress=Meddling(lambda: known.change(file), when="planned"))
    assert not cells(tmp_path / "run")


def test_the_same_words_plan_again_and_are_the_words_of_the_new_data(tmp_path):
    known = CASES["bias"]
    forget(known)
    file = known.write(tmp_path / known.name)
    with pytest.raises(UsageError, match=CHANGED):
        asked("bias", known, tmp_path, progress=Meddling(lambda: known.change(file), when="planned"))
    again = asked("bias", known, tmp_path)
    assert scores(again) == scores(asked("bias", known, tmp_path, out=tmp_path / "fresh"))


def test_word_vectors_that_change(tmp_path):
    place = tmp_path / "vectors.npz"
    known = CASES["articles"]
    words = np.array(["the", "saw", "dog", "house"])

    def write(scale: float) -> None:
        np.savez(place, words=words, vectors=scale * np.eye(4))

    for when, kept in (("planned", 0), ("between", 2)):  # a training, and the example, which reads no vectors
        write(1)
        settings = {**known.asked["settings"], "vectors": str(place)}
        meddling = Meddling(lambda: write(2), when=when)
        with pytest.raises(UsageError, match=CHANGED):
            asked("articles", known, tmp_path, data=None, out=tmp_path / when, settings=settings, progress=meddling)
        assert len(cells(tmp_path / when)) == kept


@pytest.mark.parametrize("argument", ["initial_weights", "weights"])
def test_weights_that_change(tmp_path, argument):
    place = tmp_path / "f_o.safetensors"
    classes_of = {"initial_weights": 1000, "weights": 10}[argument]
    weights = RESIDUAL_SMALL.function(size=32, classes=classes_of).state_dict()
    save_file(weights, place)
    settings = {**bam.FEW, "models": ("residual_small",), argument: str({"weights": tmp_path}.get(argument, place))}
    meddling = Meddling(lambda: save_file({k: v + 1 for k, v in weights.items()}, place), when="planned")
    with pytest.raises(UsageError, match=CHANGED):
        api.run("bam", settings=settings, methods=["constant"], out=tmp_path / "run", page=False, progress=meddling)
    assert not meddling.deeds and not cells(tmp_path / "run")


def cifar(place: Path, seed: int = 0) -> Path:
    """CIFAR-10 in its binary layout, and weights that lie beside it."""
    folder = place / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    dice = np.random.default_rng(seed)
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        records = [bytes([k % 10]) + dice.bytes(3072) for k in range(20)]
        (folder / f"{name}.bin").write_bytes(b"".join(records))
    return folder / "test_batch.bin"


def voc(place: Path, seed: int = 0) -> Path:
    """Photographs with two boxes each, as the reduced zip has them."""
    place.mkdir()
    dice = np.random.default_rng(seed)
    rows = [f"{split}_{k},{split}" for split in ("train", "val") for k in range(4)]
    with zipfile.ZipFile(place / VOC_ZIP, "w") as archive:
        for row in rows:
            picture(place / "photo.png", dice)
            archive.write(place / "photo.png", f"images/{row.split(',')[0]}.jpg")
        boxes = [f"{row.split(',')[0]},{kind},2,2,20,20,0,0" for row in rows for kind in ("cat", "dog")]
        archive.writestr(
            "images.csv", "\n".join(["image,split,width,height,classes", *(f"{r},28,24,cat" for r in rows)])
        )
        archive.writestr("boxes.csv", "\n".join(["image,class,xmin,ymin,xmax,ymax,truncated,difficult", *boxes]))
    return place / VOC_ZIP


@pytest.mark.parametrize("name, write", [("cifar10", cifar), ("voc", voc)])
def test_photographs_of_the_bias_suite_that_change(tmp_path, name, write):
    file = write(tmp_path / "data")
    bias_data.dataset.forget()  # type: ignore[attr-defined]
    spec = bias_data.data_spec(name, str(tmp_path / "data"), seed=0, side=16)
    assert len(bias_data.dataset(spec).x)
    bias_data.dataset.forget()  # type: ignore[attr-defined]
    write(tmp_path / "other", seed=1).replace(file)
    with pytest.raises(UsageError, match=CHANGED):
        bias_data.dataset(spec)


def test_weights_beside_cifar_that_change_after_the_images_were_read(tmp_path):
    cifar(tmp_path / "data")
    place = tmp_path / "data" / "cifar10_resnet20_weights.npz"
    state = models.build("resnet20", shape=(3, 32, 32), classes=10).state_dict()
    np.savez(place, **{name: value.numpy() for name, value in state.items()})
    spec = bias_data.data_spec("cifar10", str(tmp_path / "data"), seed=0, side=32)
    panel = Network(spec, "resnet20")
    dataset = bias_data.dataset(spec)
    asking = {"recipe": recipes.QUICK_8, "seed": 0, "device": "cpu"}
    assert bias_tasks.trained_network(panel, dataset, **asking)[1]["weights"] == str(place)
    np.savez(place, **{name: value.numpy() + 1 for name, value in state.items()})
    with pytest.raises(UsageError, match=CHANGED):
        bias_tasks.trained_network(panel, dataset, **asking)
