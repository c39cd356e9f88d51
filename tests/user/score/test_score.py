"""Maps made elsewhere: matched to their samples, scored as the metrics do, beside nulls on the same samples."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from PIL import Image
from typer.testing import CliRunner

import forsooth
from forsooth import UsageError, cli, report
from forsooth.report.gallery import NO_MAP, galleries
from forsooth.scores.localisation import ima, precision
from forsooth.scores.transport import emd
from forsooth.user.export import read_export
from forsooth.user.score.work import SHOWN

N = 12


@pytest.fixture
def truth() -> np.ndarray:
    masks = np.zeros((N, 6, 6), dtype=bool)
    for k, mask in enumerate(masks):
        mask[k % 4 : k % 4 + 2, 1:4] = True
    return masks


@pytest.fixture
def maps() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(N, 6, 6)).astype(np.float32)


def values(run: forsooth.Run, method: str, metric: str = "ima") -> pd.Series:
    rows = run.rows.query("method == @method and metric == @metric")
    return rows.set_index("sample")["value"].sort_index()


def scored(folder: Path, *arguments, **options) -> forsooth.Run:
    return forsooth.score(*arguments, page=False, out=folder / "run", **options)


def test_rows_are_what_the_metrics_say(tmp_path, maps, truth):
    run = scored(tmp_path, {"mine": maps}, truth, metrics=["ima", "precision", "emd"], emd_tolerance=0)
    one, mask = torch.from_numpy(maps), torch.from_numpy(truth)
    for metric, function in (("ima", ima), ("precision", precision), ("emd", emd)):
        assert values(run, "mine", metric).tolist() == pytest.approx(function(one, mask).tolist())


def test_complex_maps_are_refused(tmp_path, maps, truth):
    with pytest.raises(UsageError, match="must hold numbers, got entries of type complex64"):
        scored(tmp_path, {"mine": maps.astype(np.complex64)}, truth)
    with pytest.raises(UsageError, match=r"must be real numbers, got torch\.complex64"):
        scored(tmp_path, {"mine": torch.from_numpy(maps).to(torch.complex64)}, truth)


def test_a_metric_of_words_says_that_images_are_none(tmp_path, maps, truth):
    with pytest.raises(Exception, match=r"\(n, length\) of maps of words, got \(12, 6, 6\)"):
        scored(tmp_path, {"mine": maps}, truth, images=maps, metrics=["attr_words"])


def test_the_board_has_nulls_and_the_oracle_on_the_same_samples(tmp_path, maps, truth):
    run = scored(tmp_path, {"mine": maps, "told": truth.astype(float)}, truth, images=maps)
    board = run.leaderboard("ima").set_index("method")
    nulls = {"random", "constant", "sobel", "laplace", "rectified_input", "oracle"}
    assert set(board.index) == {"mine", "told", *nulls}
    assert board.loc[["oracle", "told"], "score"].tolist() == [1.0, 1.0]
    assert board.loc["constant", "score"] == pytest.approx(6 / 36)
    assert set(board.index[board["null"]]) == nulls
    assert run.rows.groupby("method")["sample"].nunique().eq(N).all()


def test_the_page_shows_some_samples_each_with_its_input_and_truth(tmp_path, maps, truth):
    run = scored(tmp_path, {"mine": maps}, truth, images=np.abs(maps))
    (gallery,) = galleries(report.read(run.folder))
    (row,) = gallery["rows"]
    assert len(row["samples"]) == SHOWN
    for sample in row["samples"]:
        assert NO_MAP not in sample["tiles"]
    assert gallery["columns"][:3] == ["input", "truth", "mine"]


def test_without_images_nulls_that_read_them_are_left_out_and_the_run_says_so(tmp_path, maps, truth):
    run = scored(tmp_path, maps, truth)
    assert set(run.rows["method"]) == {"maps", "random", "constant", "oracle"}
    facts = json.loads((run.folder / "run.json").read_text())["facts"]
    assert any("inputs are unknown" in fact for fact in facts)


def test_files_of_all_kinds_and_folders_give_the_same(tmp_path, maps, truth):
    np.save(tmp_path / "mine.npy", maps)
    np.savez(tmp_path / "several.npz", mine=maps)
    safetensors.numpy.save_file({"mine": maps}, tmp_path / "mine.safetensors")
    (tmp_path / "files").mkdir()
    np.save(tmp_path / "files" / "mine.npy", maps)
    for k in range(N):
        single = tmp_path / "folders" / "mine" / f"{k}.npy"
        single.parent.mkdir(parents=True, exist_ok=True)
        np.save(single, maps[k])
    expected = ima(torch.from_numpy(maps), torch.from_numpy(truth)).tolist()
    sources = ("mine.npy", "several.npz", "mine.safetensors", "files", "folders", "folders/mine")
    for k, source in enumerate(sources):
        run = scored(tmp_path / str(k), tmp_path / source, truth)
        assert values(run, "mine").tolist() == pytest.approx(expected), source


def test_channels_first_or_last_are_added_up(tmp_path, truth):
    colours = np.random.default_rng(1).normal(size=(N, 3, 6, 6))
    run = scored(tmp_path, {"first": colours, "last": np.moveaxis(colours, 1, -1)}, truth)
    flat = torch.from_numpy(np.abs(colours).sum(1))
    assert values(run, "first").tolist() == pytest.approx(ima(flat, torch.from_numpy(truth)).tolist())
    assert values(run, "first").tolist() == pytest.approx(values(run, "last").tolist())


def test_masks_and_images_in_folders_are_matched_by_name(tmp_path, maps, truth):
    order = np.random.default_rng(2).permutation(N)
    for k in order:
        for kind, picture in (("masks", truth[k] * 255), ("photos", np.abs(maps[k]) * 20)):
            (tmp_path / kind).mkdir(exist_ok=True)
            Image.fromarray(picture.astype(np.uint8)).save(tmp_path / kind / f"cat{k:02}.png")
    names = np.array([f"cat{k:02}" for k in order])
    run = scored(tmp_path, {"mine": maps[order], "sample": names}, tmp_path / "masks", images=tmp_path / "photos")
    expected = ima(torch.from_numpy(maps), torch.from_numpy(truth)).tolist()
    assert values(run, "mine").tolist() == pytest.approx(expected)
    assert "sobel" in set(run.rows["method"])


def test_a_sample_that_one_method_lacks_counts_as_its_worst_and_one_that_all_lack_is_left_out(tmp_path, maps, truth):
    np.savez(tmp_path / "a.npz", whole=maps[:10], sample=np.arange(10))
    np.savez(tmp_path / "b.npz", part=maps[2:6], sample=np.arange(2, 6))
    folder = tmp_path / "maps"
    folder.mkdir()
    for name in ("a.npz", "b.npz"):
        (tmp_path / name).rename(folder / name)
    run = scored(tmp_path, folder, truth)
    lost = run.rows.query("method == 'part' and metric == 'ima' and status == 'error'")
    assert lost["sample"].tolist() == [0, 1, 6, 7, 8, 9]
    assert lost["message"].eq("there is no map of this sample").all()
    assert run.rows["sample"].max() == 9
    assert run.leaderboard("ima").set_index("method").loc["part", "failed"] == pytest.approx(0.6)


def test_a_map_of_zeros_or_nan_says_so(tmp_path, maps, truth):
    maps[0] = 0
    maps[1, 2, 2] = np.nan
    status = scored(tmp_path, maps, truth).rows.query("method == 'maps' and metric == 'ima'")
    assert status.set_index("sample")["status"].iloc[:3].tolist() == ["zero map", "not finite", "ok"]


def test_many_samples_in_two_processes_are_those_of_one(tmp_path):
    drawn = np.random.default_rng(3)
    maps = drawn.random((230, 5, 5))
    truth = drawn.random((230, 5, 5)) < 0.3
    one = scored(tmp_path / "one", maps, truth, metrics=["emd"])
    two = scored(tmp_path / "two", maps, truth, metrics=["emd"], workers=2)
    assert (one.folder / "scores.parquet").read_bytes() == (two.folder / "scores.parquet").read_bytes()
    assert values(one, "maps", "emd").index.tolist() == list(range(230))


def test_exported_samples_come_back_and_are_those_of_the_suite(tmp_path):
    words = {"scenario": "LIN", "background": "WHITE"}
    (place,) = forsooth.export_data("xaitris", only=words, samples=8, out=tmp_path / "data", seed=3)
    samples = forsooth.read_export(place)
    from forsooth.records import Choice
    from forsooth.suites.xaitris.plan import datasets
    from forsooth.suites.xaitris.settings import QUICK

    choice = Choice(only={"scenario": ("LIN",), "background": ("WHITE",)}, seed=3)
    ((_, dataset),) = datasets(QUICK, choice)
    rows = torch.tensor([int(number) for number in samples.ids])
    assert len(rows) == 8 and set(rows.tolist()) <= set(dataset.splits["test"].tolist())
    assert torch.equal(samples.y, dataset.y[rows]) and torch.equal(samples.at(rows[:0]).y, rows[:0])
    assert torch.equal(samples.x, dataset.x[rows]) and torch.equal(samples.truth, dataset.truth[rows])
    assert dataset.y[rows].bincount().tolist() == [4, 4]
    picture = np.asarray(Image.open(place / "truth" / f"{samples.ids[0]}.png"))
    assert np.array_equal(picture > 0, samples.truth[0].numpy())


@pytest.mark.parametrize(
    ("suite", "options"),
    [
        ("articles", {"only": {"kind": "Article"}}),
        ("planted", {"only": {"experiment": "5.1", "manipulation": "watermark"}, "settings": {"trainings": 1}}),
        ("bam", {}),
    ],
)
def test_other_suites_give_their_samples_too(tmp_path, suite, options):
    for place in forsooth.export_data(suite, preset="demo", samples=6, out=tmp_path / "data", **options):
        samples = read_export(place)
        assert len(samples.ids) == 6 and samples.truth.dtype == torch.bool and bool(samples.truth.any())
        run = scored(tmp_path / place.name, {"told": samples.truth.numpy()}, place)
        assert values(run, "told").eq(1).all()


def test_where_nobody_knows_the_truth_nothing_is_exported(tmp_path):
    with pytest.raises(UsageError, match="`suite` must have data whose truth is known, got 'bias'"):
        forsooth.export_data("bias", out=tmp_path / "data")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"maps": np.ones((3, 6, 6))}, "one for each of 12 samples.*maps has 3"),
        ({"maps": np.ones((N, 5, 5))}, r"shape of the truth \(6, 6\).*maps has \(5, 5\)"),
        ({"maps": {"mine": np.ones((1, 6, 6)), "sample": [99]}}, "mine has a sample 99"),
        ({"maps": {"random": np.ones((N, 6, 6))}}, "names that no null has, got random"),
        ({"maps": {}}, "got no maps"),
        ({"metrics": ["gap"]}, "gap reads total, too"),
        ({"metrics": ["imma"]}, "ima"),
        ({"images": np.ones((N, 4, 4))}, r"fit the masks \(12, 6, 6\)"),
        ({"emd_tolerance": -1.0}, "`emd_tolerance` must be 0 or more, got -1.0"),
        ({"truth": "nowhere.npy"}, "`truth` must be a file or a folder that is there, got nowhere.npy"),
        ({"maps": "nowhere.npz"}, "`maps` must be a file or a folder that is there, got nowhere.npz"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, maps, truth, change, message):
    arguments = {"maps": maps, "truth": truth, **change}
    with pytest.raises(UsageError, match=message):
        scored(tmp_path, **arguments)


def test_a_folder_of_exports_is_answered_with_those_inside(tmp_path, maps):
    (tmp_path / "data" / "LIN").mkdir(parents=True)
    np.savez(tmp_path / "data" / "LIN" / "samples.npz", x=maps)
    with pytest.raises(UsageError, match=r"got no mask in .*data; did you mean .*data/LIN\?"):
        scored(tmp_path, maps, tmp_path / "data")


def test_at_the_terminal_with_a_page(tmp_path, maps, truth):
    np.save(tmp_path / "mine.npy", maps)
    np.save(tmp_path / "truth.npy", truth)
    words = [
        "score",
        str(tmp_path / "mine.npy"),
        "--truth",
        str(tmp_path / "truth.npy"),
        "--out",
        str(tmp_path / "run"),
    ]
    done = CliRunner().invoke(cli.app, [*words, "--workers", "1", "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0 and "mine" in done.output and "oracle" in done.output
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Maps made elsewhere" in page and "forsooth score" in page and "What the methods point at" in page
