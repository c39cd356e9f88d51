"""The documents: what decides them, which are explained, and what a reader of the page is told."""

import gzip
from dataclasses import replace

import numpy as np
import pytest
import torch
from suites.articles.small import ODD, TINY, odd_documents

from forsooth import api
from forsooth.datasets import remarks
from forsooth.datasets.articles import Setting, articles
from forsooth.plain import from_plain, to_plain
from forsooth.records import Choice, UsageError
from forsooth.suites.articles import data
from forsooth.suites.articles.data import Chosen, DataSpec, Panel
from forsooth.suites.articles.plan import chosen_data
from forsooth.suites.articles.settings import PRESETS
from forsooth.suites.choose import SHOWN

pytestmark = pytest.mark.usefixtures("single")
SPEC = DataSpec(Setting("CN", sizes=(40, 6, 10), length=40), seed=3)


def even(labels: torch.Tensor) -> bool:
    counts = torch.bincount(labels, minlength=2)
    return int(counts.max() - counts.min()) <= 1


def test_a_spec_is_the_same_json_as_ever():
    assert to_plain(SPEC) == {
        "setting": {"kind": "CN", "sizes": [40, 6, 10], "length": 40, "cap": 20_000, "filtered": True},
        "path": None,
        "vectors": None,
        "digest": None,
        "vectors_digest": None,
        "seed": 3,
    }
    assert from_plain(to_plain(SPEC), DataSpec) == SPEC


def test_a_panel_is_the_same_json_as_ever():
    assert to_plain(Panel("CN")) == {"kind": "CN", "model": "none", "model_seed": -1, "rate": None}
    own = Panel("NC", "rationale_relaxed", 2, 0.05)
    assert from_plain(to_plain(own), Panel) == own


def test_rows_of_a_panel_begin_alike():
    row = Panel("NC", "rationale_relaxed", 2, 0.05).row("scores", "imdb", "lime").flat()
    assert (row["suite"], row["part"], row["dataset"], row["method"]) == ("articles", "scores", "imdb", "lime")
    assert (row["kind"], row["model"], row["model_seed"], row["rate"]) == ("NC", "rationale_relaxed", 2, 0.05)
    assert row["status"] == "ok" and row["value"] is None


def test_the_same_spec_is_made_once():
    assert data.dataset(SPEC) is data.dataset(replace(SPEC))
    assert data.dataset(SPEC) is not data.dataset(replace(SPEC, seed=4))


def test_kinds_share_their_documents_and_who_is_explained():
    one, two = (replace(SPEC, setting=replace(SPEC.setting, kind=kind)) for kind in ("Article", "NC"))
    rows = [data.explained(data.dataset(spec), 6).rows for spec in (one, two)]
    assert torch.equal(*rows)
    lengths = [data.explained(data.dataset(spec), 6).lengths for spec in (one, two)]
    assert torch.equal(*lengths)


def test_masks_of_words_part_every_document(odd):
    chosen = Chosen(odd, torch.arange(len(odd.dataset.x)))
    masks = torch.stack(list(chosen.masks().values())).int()
    assert tuple(chosen.masks()) == tuple(data.WORDS.values())
    assert torch.equal(masks.sum(0), (chosen.tokens != 0).int())


def test_documents_at_places_are_documents_of_the_same_dataset(odd):
    chosen = Chosen(odd, torch.tensor([4, 2, 7]))
    part = chosen.at(torch.tensor([2, 0]))
    assert part.rows.tolist() == [7, 4]
    assert torch.equal(part.tokens, odd.dataset.x[[7, 4]]) and torch.equal(part.labels, odd.dataset.y[[7, 4]])
    assert torch.equal(part.lengths, (odd.dataset.x[[7, 4]] != 0).sum(1))


def test_the_page_shows_the_shortest_of_at_least_thirty_words():
    documents = data.dataset(DataSpec(Setting("CN", sizes=(40, 6, 20), length=60), seed=0))
    chosen = data.explained(documents, None)
    lengths = [int(chosen.lengths[place]) for place in data.shown(chosen)]
    assert lengths == sorted(length for length in chosen.lengths.tolist() if length >= data.PAGE_WORDS)[:SHOWN]


def test_the_page_shows_the_longest_where_all_are_short():
    short = articles(Setting("CN", sizes=(6, 2, 2), length=8, filtered=False), ODD, seed=0)
    chosen = Chosen(short, torch.arange(10))
    lengths = [int(chosen.lengths[place]) for place in data.shown(chosen)]
    assert lengths == sorted(chosen.lengths.tolist(), reverse=True)[:SHOWN] and lengths[0] < data.PAGE_WORDS


def test_the_background_is_as_long_as_the_explained_document(odd):
    tokens = data.background(odd, 5)
    assert tokens.shape[1] == 5 and (tokens != 0).all()


def test_the_background_is_padding_where_no_document_is_as_long(odd):
    tokens = data.background(odd, odd.dataset.x.shape[1] + 1)
    assert tokens.shape == (1, odd.dataset.x.shape[1] + 1) and (tokens == 0).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_explain_and_stand_behind_evenly(preset):
    settings = PRESETS[preset]
    sizes = tuple(min(pair) for pair in zip(settings.sizes, (1000, 50, 400), strict=True))
    for spec in chosen_data(replace(settings, sizes=sizes), Choice()):
        documents = data.dataset(spec)
        chosen = data.explained(documents, settings.samples)
        assert even(chosen.labels) and len(chosen.rows.unique()) == len(chosen.rows) == settings.samples
        assert torch.isin(chosen.rows, documents.dataset.splits["test"]).all()
        behind = data.behind(documents, 30)
        assert len(behind.rows) == data.BACKGROUND_DOCUMENTS and even(behind.labels)
        assert torch.isin(behind.rows, documents.dataset.splits["train"]).all()


def test_who_took_part_is_counted_by_role_and_label():
    chosen = data.explained(data.dataset(SPEC), 4)
    lines = data.drawn(chosen, "CN")
    assert {line["role"] for line in lines} == {"explained", "background"}
    assert all(line["kind"] == "CN" for line in lines)
    assert sum(line["count"] for line in lines if line["role"] == "explained") == 4


def test_sentences_on_the_documents_have_their_numbers():
    first, second = data.notes(SPEC)
    facts = data.dataset(SPEC).dataset.facts
    shares = " / ".join(f"{100 * share:.1f}" for share in facts["frequency"])
    assert first.startswith("CN: ") and f"{shares} % of the words (4.1 / 3.8 / 92.1 % in the paper)" in first
    assert "36/5/8 train, validate and test." in second and f"vocabulary of {facts['words']}." in second


def test_documents_that_nothing_was_left_out_of_say_so():
    facts = dict.fromkeys(
        (
            *("empty", "without_tokens", "without_articles", "articles_in_one_half", "undecided", "truncated"),
            *("undecodable_bytes", "length"),
        ),
        0,
    )
    assert remarks._losses(facts) == "none was left out or cut"
    lost = remarks._losses({**facts, "empty": 2, "truncated": 3, "length": 9, "undecodable_bytes": 1})
    assert lost == "2 were empty, 3 were cut at 9 tokens; 1 bytes could not be decoded"


def test_word_vectors_are_counted_on_the_page(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["the", "beer", "nowhere"]), vectors=np.eye(3))
    settings = {**TINY, "vectors": str(tmp_path / "v.npz"), "kinds": ("CN",), "epochs": 1, "samples": 1}
    api.run(
        "articles", methods=["attention", "random"], only={"model": "attention"}, settings=settings, out=tmp_path / "r"
    )
    page = (tmp_path / "r" / "report.html").read_text()
    assert "words have one in the given file" in page
    assert "A panel has 1 sample only" in page and "In the one panel no method is clearly better" in page


def test_documents_of_the_user_and_what_is_wrong_with_them(tmp_path):
    settings = {**TINY, "sizes": (40, 5, 5), "kinds": ("CN",), "epochs": 1, "samples": 2}
    lines = [f"the {word} saw a dog near the house and a {word} ." for word in "abcdefghijklmnopqrstuvwxyz" * 2]
    path = tmp_path / "mine.tsv.gz"
    path.write_bytes(
        gzip.compress(("id\ttext\n" + "\n".join(f"1\t{line}" for line in lines)).encode() + b"\n1\t\xff the\n")
    )
    finished = api.run("articles", methods=["attention"], settings=settings, data=path, out=tmp_path / "run")
    assert set(finished.rows["dataset"]) == {"mine", "articles"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "40/5/5 train, validate and test" in page
    assert "1 bytes could not be decoded" in page and "had articles in one half only" in page


def test_too_few_documents_are_refused(tmp_path):
    (tmp_path / "one.txt").write_text("the cat saw a dog")
    with pytest.raises(UsageError, match=r"`data` must hold at least 3 documents .* got 1 of 1 in one"):
        api.run("articles", settings=TINY, data=tmp_path / "one.txt", out=tmp_path / "one")


def test_an_empty_document_has_no_words_of_any_kind():
    odd = odd_documents()
    first = Chosen(odd, torch.tensor([0]))
    assert int(first.lengths[0]) == 0 and not any(mask.any() for mask in first.masks().values())
