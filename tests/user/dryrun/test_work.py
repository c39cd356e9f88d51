"""The dry run from a folder of pictures to words, with trainings good and bad, and folders of every sort."""

import contextlib
import hashlib
import json
import shutil
import sys
import zipfile
from pathlib import Path
from unittest import mock

import numpy as np
import own_trainings
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

import forsooth
from forsooth import cli
from forsooth.datasets.manipulations import joint_region
from forsooth.datasets.visibility import legible
from forsooth.records import UsageError
from forsooth.suites.planted import data as planted
from forsooth.user.dryrun import DryRunRequest, request, work

SMALL = {"size": 32, "artefacts": ["brightness"], "methods": ["saliency"], "samples": 8}


def picture(dice: np.random.Generator, size=(40, 36)) -> Image.Image:
    """Coloured blots, as a photograph is smoother than noise."""
    small = dice.integers(90, 256, (5, 5, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


def write_photos(folder: Path, *, each: int = 90, classes=("cat", "dog")) -> Path:
    dice = np.random.default_rng(0)
    for name in classes:
        (folder / name).mkdir(parents=True)
        for k in range(each):
            picture(dice).save(folder / name / f"{k:03}.png")
    return folder


def digest(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files}


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    return write_photos(tmp_path_factory.mktemp("photos") / "mine")


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calls() -> list[str]:
    return own_trainings.LOG.read_text().splitlines() if own_trainings.LOG.is_file() else []


def ask(photos, *, page=False, **words):
    """A dry run, without its page where no page is looked at: figures take most of the time."""
    asked = {**SMALL, "train": "own_trainings:learns", "out": "run", **words}
    with contextlib.nullcontext() if page else mock.patch.object(forsooth.DryRun, "report"):
        return forsooth.dryrun(photos, **asked)


def test_a_training_of_the_user(photos, here):
    before = digest(photos)
    made = ask(
        photos,
        methods=["saliency", own_trainings.my_map, "captum.attr:Saliency"],
        artefacts=["brightness", "blur"],
        page=True,
    )
    assert digest(photos) == before
    table = made.table.set_index(["artefact", "method"])
    assert list(made.table["method"].unique()[:3]) == ["saliency", "own_trainings:my_map", "captum.attr:Saliency"]
    dark = table.loc["center_brightness"]
    assert (dark["accuracy"] > 0.8).all() and (dark["status"] == "ok").all()
    assert dark.loc["oracle", "present"] == 1 and dark.loc["constant", "present"] == pytest.approx(
        dark["region"].iloc[0]
    )
    assert dark.loc["constant", ["low", "high"]].tolist() == pytest.approx(dark["region"].iloc[:2].tolist())
    assert dark.loc["random", "present"] == pytest.approx(dark["region"].iloc[0], abs=0.03)
    assert dark.loc["saliency", "present"] == pytest.approx(
        dark.loc["own_trainings:my_map", "present"]
    )  # both |gradient|
    assert "center_brightness: the model is right on" in made.words and "it uses it" in made.words
    assert "center_brightness: saliency puts" in made.words
    page = made.report()
    text = page.read_text()
    assert page == Path("run/report.html") and "saliency puts" in text and "Does the model use the artefact?" in text
    assert {f.stem for f in Path("run/figures").glob("*.png")} >= {"examples_own_trainings.learns", "planted_regions"}
    assert len(calls()) == 2 and json.loads(calls()[0])[1:] == [[180, 3, 32, 32], ["test", "train", "val"]]
    assert set(made.rows["presence"].dropna()) == {"with", "without"} and len(made.rows)
    assert (
        pd.read_csv("run/dryrun.csv")["present"].notna().any() and "| saliency |" in Path("run/dryrun.md").read_text()
    )


def test_our_own_training_and_the_same_call_goes_on(photos, here):
    made = ask(photos, train=None, artefacts=["noise"])
    assert made.table["accuracy"].min() > 0.8 and set(made.table["status"]) == {"ok"}
    first = Path("run/dryrun.csv").read_bytes()
    cells = sorted(Path("run/store/cells").glob("*/*"))
    assert len(cells) == 1 + 1 + 1 + len(request.NULLS)
    times = {cell: cell.stat().st_mtime_ns for cell in cells}
    shutil.rmtree(cells[2])
    ask(photos, train=None, artefacts=["noise"])
    assert Path("run/dryrun.csv").read_bytes() == first
    assert [cell for cell in cells if cell.stat().st_mtime_ns != times[cell]] == [cells[2]]


def test_a_stopped_run_goes_on_and_trains_no_model_twice(photos, here):
    words = {"train": "own_trainings:is_stopped_at_the_second", "artefacts": ["brightness", "blur"]}
    with pytest.raises(KeyboardInterrupt):
        ask(photos, **words)
    made = ask(photos, **words)
    trained = [json.loads(line)[0] for line in calls() if line != "stopped"]
    assert [name.split("-")[-1] for name in trained] == ["center_brightness", "peripheral_blur"]
    assert set(made.table["artefact"]) == {"center_brightness", "peripheral_blur"}


def test_processes_give_the_same_bytes(photos, here):
    for workers, out in ((1, "one"), (2, "two")):
        ask(photos, artefacts=["brightness", "blur"], workers=workers, out=out)
    assert Path("one/dryrun.csv").read_bytes() == Path("two/dryrun.csv").read_bytes()


def test_an_edited_training_is_run_again(photos, here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    source = Path(own_trainings.__file__).read_text()
    Path("edited.py").write_text(source)
    ask(photos, train="edited:learns")
    Path("edited.py").write_text(source.replace("range(40)", "range(41)"))
    del sys.modules["edited"]
    ask(photos, train="edited:learns")
    assert len(calls()) == 2


@pytest.mark.parametrize("train", ["does_not_learn", "learns_by_heart", "writes_into_its_data", "looks_for_the_truth"])
def test_a_model_that_does_not_use_the_artefact_is_not_explained(photos, here, train):
    made = ask(photos, train=f"own_trainings:{train}", page=True)
    assert made.table["present"].isna().all() and made.table["finding"].eq("").all()
    assert "Chance alone gets so far with a p-value of 0." in made.words
    assert "make the artefact more visible (visibility 4), give more images (images) or train longer." in made.words
    assert made.words.endswith("nothing can be said of the methods: do as is said above, and ask again.")
    assert len(made.shown()) == 1 and Path("run/report.html").is_file()


@pytest.mark.parametrize(
    "train, message",
    [
        ("raises", "raised ValueError: no more memory for you (own_trainings.py, line "),
        ("leaves", "raised SystemExit: 3"),
        ("gives_weights", "must return a torch module, got OrderedDict"),
        ("gives_a_class", "must return a torch module, got the class ByHeart"),
        (
            "gives_ten_logits",
            "must give 2 logits for an image, one for each label (0 without the artefact, 1 with it), got 10",
        ),
        ("gives_one_logit", "must give 2 logits for an image"),
        ("gives_nan", "must give finite numbers, got nan or infinity for 18 of 18 inputs"),
        ("gives_pairs", "must give a tensor of shape (n, classes), got tuple"),
        ("expects_other_images", "must take inputs of shape (2, 3, 32, 32), but it raised RuntimeError"),
    ],
)
def test_a_training_that_gives_no_model_is_one_clear_line(photos, here, train, message):
    with pytest.raises(UsageError) as raised:
        ask(photos, train=f"own_trainings:{train}")
    assert str(raised.value).startswith(f"`train` must give a model to explain, but own_trainings:{train} ")
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_one_artefact_without_a_model_does_not_stop_the_others(photos, here):
    made = ask(photos, train=own_trainings.bad_for_the_watermark, artefacts=["watermark", "brightness"])
    assert (
        "watermark: no model, so nothing was explained: own_trainings:bad_for_the_watermark raised Value" in made.words
    )
    assert "center_brightness: saliency puts" in made.words
    status = made.table.groupby("artefact")["status"].unique()
    assert status["watermark"].tolist() == ["skipped"] and status["center_brightness"].tolist() == ["ok"]
    assert made.words.endswith("Of watermark nothing can be said.") and "not this one" in made.report().read_text()


@pytest.mark.parametrize(
    "train, message",
    [
        (lambda dataset: None, "`train` must be a function with a name of its own"),
        (nn.Identity(), "`train` must be a function or package.module:function, got Identity"),
        (own_trainings.ByHeart, "`train` must be a function or package.module:function, got type"),
        ("own_trainings", "`train` must be package.module:function, got 'own_trainings'"),
        ("nowhere_at_all:train", "`train` names the module 'nowhere_at_all', which cannot be imported"),
        ("own_trainings:learn", "did you mean learns"),
        ("own_trainings:NUMBER", "`train` must name a function(dataset) that returns a torch module, got own_train"),
        ("own_trainings:ByHeart", "got own_trainings:ByHeart, a class"),
        ("broken_module:train", "whose import raised SyntaxError"),
    ],
)
def test_a_training_that_is_none_is_named_before_any_work(photos, here, monkeypatch, train, message):
    monkeypatch.syspath_prepend(str(here))
    Path("broken_module.py").write_text("def train(:")
    with pytest.raises(UsageError) as raised:
        ask(photos, train=train)
    assert message in str(raised.value)
    assert not Path("run").exists()


def test_a_method_that_raises_is_a_sentence(photos, here):
    made = ask(photos, methods=["own_trainings:raises", "grad_cam", "deep_lift"], train="own_trainings:has_no_map")
    assert "center_brightness: own_trainings:raises gave no map: TypeError" in made.words
    assert "Nothing can be said of own_trainings:raises and grad_cam: no map was given." in made.words
    assert (
        "center_brightness: grad_cam gave no map: grad_cam reads a layer that gives a map, and the model has none."
        in (made.words)
    )
    assert made.table.set_index("method")["status"][["grad_cam", "deep_lift"]].tolist() == ["skipped", "ok"]


def test_every_sort_of_file_is_read_or_counted(photos, here):
    mixed, dice = Path("mixed"), np.random.default_rng(1)
    shutil.copytree(photos, mixed)
    (mixed / "dog" / "puppies" / "2019").mkdir(parents=True)
    for k, mode in enumerate(["L", "RGBA", "P", "CMYK", "1", "LA"]):
        picture(dice, size=(20 + 11 * k, 90 - 13 * k)).convert(mode).save(mixed / "dog" / f"mode{k}.tif")
    Image.fromarray(dice.integers(0, 65535, (30, 30), dtype=np.uint16)).save(mixed / "cat" / "deep.png")
    picture(dice, size=(500, 40)).save(mixed / "dog" / "puppies" / "2019" / "wide.jpg")
    (mixed / "cat" / "empty.jpg").write_bytes(b"")
    (mixed / "cat" / "cut.png").write_bytes((photos / "cat" / "000.png").read_bytes()[:200])
    (mixed / "cat" / "text.jpg").write_text("not a picture")
    (mixed / "notes.txt").write_text("mine")
    picture(dice).save(mixed / "stray.png")
    before = digest(mixed)
    made = ask(mixed)
    assert digest(mixed) == before
    assert (
        "188 of 191 images used, in 2 classes (cat, dog). Files that could not be used: 3 (cat/cut.png: " in made.words
        and " at 0x" not in made.words
    )
    assert "Images in no class folder, left out: 1." in made.words and "smaller than 32 px, enlarged: " in made.words


def test_photographs_without_classes_will_do(photos, here):
    Path("flat").mkdir()
    for k, photo in enumerate(sorted(photos.rglob("*.png"))):
        shutil.copy(photo, f"flat/{k:03}.png")
    made = ask("flat")
    assert "180 of 180 images used, all in one class." in made.words
    assert made.table["status"].eq("ok").any()


def test_a_zip_and_split_folders_are_as_good_as_a_folder(photos, here):
    with zipfile.ZipFile("photos.zip", "w") as archive:
        for file in sorted(photos.rglob("*.png")):
            archive.write(file, f"all/{file.relative_to(photos)}")
    zipped = ask("photos.zip", out="zipped").table
    pd.testing.assert_frame_equal(zipped, ask(photos, out="plain").table)
    for k, file in enumerate(sorted(photos.rglob("*.png"))):
        target = Path("splits") / ("train", "train", "val", "test")[k % 4] / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    made = ask("splits", out="split").rows
    assert planted.base(work.usable_images(DryRunRequest(data="splits", size=32)))  # read as they are
    assert made.query("metric == 'accuracy'")["value"].between(0, 1).all()


@pytest.mark.parametrize(
    "classes, each, message",
    [
        (("cat",), 40, "`data` must leave at least 10 images for testing"),
        (("cat", "dog"), 5, "`data` must leave at least 10 images for testing"),
        ((), 0, "`data` must hold at least two classes"),
        (("cat", "dog"), 2, "every class must have at least 3 samples, but 'cat' has 2"),
    ],
)
def test_too_little_data_is_one_clear_message(here, classes, each, message):
    folder = write_photos(here / "few", classes=classes, each=each) if classes else here / "few"
    folder.mkdir(exist_ok=True)
    with pytest.raises(UsageError) as raised:
        ask(folder)
    assert str(raised.value).startswith(message)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "words, message",
    [
        ({"artefacts": ["watermrk"]}, "`artefacts` must be a known name, got 'watermrk'; did you mean watermark"),
        ({"methods": ["salience"]}, "did you mean saliency"),
        ({"visibility": 5}, "`visibility` must be 0 (least) to 4, got 5"),
        ({"size": 8}, "`size` must be at least 16, got 8"),
        ({"samples": 0}, "`samples` must be at least 1, got 0"),
        ({"images": 4}, "`images` must be at least 6, three for each of 2 classes, got 4"),
        ({"images": 30}, "`data` must leave at least 10 images for testing"),
        ({"device": "tpu"}, "`device` must be a known name, got 'tpu'"),
    ],
)
def test_bad_words_are_answered_before_any_work(photos, here, words, message):
    with pytest.raises(UsageError) as raised:
        ask(photos, **words)
    assert message in str(raised.value)
    assert not Path("run").exists() and not calls()


def test_nothing_is_written_into_the_data_or_over_other_files(photos, here, monkeypatch):
    shutil.copytree(photos, "copy")
    with pytest.raises(UsageError, match="`out` must lie outside of `data`"):
        ask("copy", out="copy/run")
    monkeypatch.chdir(here / "copy")
    with pytest.raises(UsageError, match="`out` must lie outside of `data`"):
        ask(".", out=None)
    monkeypatch.chdir(here)
    Path("thesis").mkdir()
    Path("thesis/chapter.txt").write_text("one")
    with pytest.raises(UsageError, match="`out` must be new, empty or an earlier run"):
        ask(photos, out="thesis")


def test_at_the_terminal(photos, here, monkeypatch, capsys):
    words = ["dryrun", "--data", str(photos), "--train", "own_trainings:learns", "--artefacts", "brightness,hue"]
    words += ["--methods", "saliency,own_trainings:my_map", "--size", "32", "--samples", "8", "--images", "170"]
    done = CliRunner().invoke(cli.app, [*words, "--workers", "1", "--quiet", "--out", "run"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "170 of 180 images used, in 2 classes (cat, dog)." in done.stdout
    assert "center_brightness: own_trainings:my_map puts" in done.stdout and "oracle" in done.stdout
    assert "striped_hue: the model is right on" in done.stdout and "Open the page:" in done.stdout
    run = json.loads(Path("run/run.json").read_text())
    shown = {line["method"]: line["present"] for line in run["table"] if line["artefact"] == "center_brightness"}
    assert {"saliency", "own_trainings:my_map", "oracle"} <= set(shown) and shown["saliency"].endswith("]")
    assert shown["saliency"] in Path("run/report.html").read_text()
    assert run["command"].startswith(
        f"forsooth dryrun --data {photos} --train own_trainings:learns --methods saliency,"
    )
    monkeypatch.setattr(sys, "argv", ["forsooth", "dryrun", "--data", "nowhere"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        f"forsooth: `data` must be a folder or readable zip of images, but there is nothing at {here / 'nowhere'}\n"
    )


def test_all_images_take_part_and_the_label_is_the_artefact(photos):
    asked = DryRunRequest(data=str(photos), size=32)
    columns, spec = work.panel("watermark", work.usable_images(asked), asked)
    dataset = planted.dataset(spec)
    before = planted.base(spec.images)
    assert len(dataset.x) == 180 and dataset.facts["p_star"] == 0.5 and columns["part"] == "scores"
    changed = (dataset.x != before.x).flatten(1).any(1)
    assert torch.equal(changed, dataset.y == 1)
    assert not ((dataset.x != before.x).any(1) & ~dataset.truth).any()
    assert abs((dataset.y == before.y).double().mean().item() - 0.5) < 0.15


def test_regions_are_symmetric_so_that_images_may_be_mirrored():
    for name in request.artefact_names([]):
        for side in (32, 64, 100):
            region = joint_region([legible(name, level=3, side=side)], size=(side, side))
            assert torch.equal(region, region.flip(-1)), (name, side)
