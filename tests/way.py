"""The way from data to a board, walked through the public API with methods that watch it, and what must hold on it.

Every check takes a walk and raises AssertionError where the way is wrong. `test_way.py` holds sound walks against
them, `test_planted_failures.py` walks in which something was broken on purpose.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import plain_world
import spies
import torch
from torch import Tensor

import forsooth

METHODS = ("saliency", "integrated_gradients", "smooth_grad", "lime", "pfi", "random")


@dataclass(frozen=True)
class Words:
    """What `forsooth.run` is asked: the smallest run in which the networks still learn what they must.

    n        samples of the dataset; 0: the suite makes several
    classes  that must take part, as many as there are of the least of them
    methods  asked in this order
    signal   the one whose maps lie on the truth, which is clearly better than chance
    paint    writes a user's data into a folder; None: the suite generates its own
    """

    suite: str
    n: int
    classes: int
    settings: dict[str, Any]
    only: dict[str, str]
    methods: tuple[Any, ...]
    signal: str = spies.WATCH
    paint: Callable[[Path], Path] | None = None


TETROMINO = {"n": 3000, "alpha": 0.3, "samples": 40, "sweep": (), "trainings": 1, "metrics": ("ima",)}
PLANTED = {
    **{"per_class": 300, "side": 32, "strength": 6, "trainings": 1, "samples": 8, "gate": 0.0, "metrics": ("attr",)},
    **{"manipulations": ("watermark",), "manipulations_followup": (), "levels": (), "r_values": ()},
    **{"restarts": 0, "epochs": 3},
}
TABLE = {"datasets": ("suppressor",), "models": ("linear",), "samples": 10, "players": ("input",), "trainings": 1}
BAM = {
    **{"side": plain_world.SIDE, "scenes": None, "train": 12, "val": 1, "test": 6, "epochs": 3, "gate": 0.0},
    **{"fine_train": 5, "fine_val": 3, "fine_test": 8, "samples": 48, "samples_expensive": 10, "samples_per_k": 4},
    **{"placings": ("as_built",), "trials": 8, "ks": (1.0,), "examples": 5, "random_sets": 2, "trainings": 1},
}
ARTICLES = {
    **{"sizes": (600, 20, 40), "samples": 10, "gate": 0.0, "gate_reinforce": 0.0, "epochs": 4, "length": 40},
    **{"rates_article": (), "rates_halves": (), "kinds": ("Article",), "trainings": 1},
}
WATCHED = ("random", "oracle", *spies.RECORDS)
LIN = {"scenario": "LIN", "background": "WHITE", "model": "llr"}
XOR = {"scenario": "XOR", "background": "WHITE", "model": "mlp"}
RIGID = {**XOR, "scenario": "RIGID"}  # every image has a truth of its own
FEW = {**TETROMINO, "samples": 10, "gate": 0.0}
WALKS = {
    "xaitris": Words("xaitris", 3000, 2, TETROMINO, LIN, (*METHODS, *WATCHED)),
    "xor": Words("xaitris", 3000, 4, FEW, XOR, ("random", spies.RECORDS[0])),
    "rigid": Words("xaitris", 1000, 2, {**FEW, "n": 1000}, RIGID, ("random", spies.RECORDS[1])),
    "bias": Words("bias", 4000, 2, TABLE, {}, (*METHODS, spies.RECORDS[0])),
    "planted": Words("planted", 600, 4, PLANTED, {}, ("saliency", *WATCHED)),
    "articles": Words(
        *("articles", 0, 2, ARTICLES, {"model": "attention"}),
        methods=("gradient", "gradient_x_input", *WATCHED),
        signal="gradient_x_input",
    ),
    "bam": Words(
        *("bam", 0, len(plain_world.GREYS), BAM, {}),
        methods=("gradient", "integrated_gradients", "random", *spies.RECORDS),
        signal="integrated_gradients",
        paint=plain_world.paint,
    ),
}


@dataclass(frozen=True)
class Walk:
    """A finished run, and what its methods were asked."""

    words: Words
    run: forsooth.Run
    seen: tuple[spies.Question, ...]

    def mean(self, method: str) -> float:
        """The share of its map that a method gives to the truth; in BAM with the network for objects."""
        rows = self.run.rows[self.run.rows["method"].eq(method)]
        if self.words.suite == "bam":
            return float(rows.query("part == 'samples' and metric == 'mcs'")["first"].mean())
        rows = rows[rows["part"].eq("scores") & rows["sample"].ge(0)]
        return float(rows[rows["metric"].isin(("ima", "attr", "attr_words"))]["value"].mean())

    @property
    def classes_seen(self) -> dict[str, Tensor]:
        """The classes of the samples that methods were really given in a role, as far as their inputs tell."""
        return SEEN.get(self.words.suite, of_targets)(self.seen)

    @property
    def classes(self) -> pd.DataFrame:
        return pd.DataFrame(json.loads((self.run.folder / "run.json").read_text())["classes"])


def of_targets(seen: Sequence[spies.Question]) -> dict[str, Tensor]:
    """What is explained is of the class that it is explained for."""
    return {"explained": seen[0].target}


def of_articles(seen: Sequence[spies.Question]) -> dict[str, Tensor]:
    """A document is of the class that its articles tell: they are the same word in all documents of one label."""
    first = torch.cat([question.x[range(len(where)), where] for question in seen for where in [telling(question)]])
    words, explained = first.unique(dim=0, return_inverse=True)
    held = [(question.background[:, :, None] == words).all(3).any(1) for question in seen]
    return {"explained": explained, **{f"background {n}": own.int().argmax(1) for n, own in enumerate(held)}}


def telling(question: spies.Question) -> Tensor:
    """(n,) the place of the first article that tells the label."""
    return question.truth[:, :, 0].int().argmax(1)


def of_pastes(seen: Sequence[spies.Question]) -> dict[str, Tensor]:
    """The colours of scenes and objects: the first question is about images that have both."""
    given = {"explained": seen[0].x, "background": seen[0].background}
    found = {role: plain_world.classes_seen(x) for role, x in given.items()}
    return {f"{role}, {label}": own for role, labels in found.items() for label, own in labels.items()}


SEEN = {"articles": of_articles, "bam": of_pastes}


def walk(words: Words, folder: Path, **changes: Any) -> Walk:
    """The run of these words in a new folder, on one processor."""
    spies.SEEN.clear()
    asked = {"methods": words.methods, "only": words.only, "settings": words.settings, "device": "cpu", **changes}
    if words.paint is not None:
        asked["data"] = str(words.paint(folder / "data"))
    run = forsooth.run(words.suite, out=folder / "run", page=False, **asked)
    return Walk(words, run, tuple(spies.SEEN))


def every_class_takes_part_evenly(walk: Walk) -> None:
    """Explained and background samples, as the run counts them: as many of each class, within one."""
    counted = walk.classes
    assert len(counted), "nobody is explained"
    where = [name for name in counted.columns if name not in ("class", "count")]
    for place, own in counted.fillna("").groupby(where):
        assert len(own) == min(walk.words.classes, own["count"].sum()), (place, dict(own["class"]))
        if {"explained", "background"} & set(own["role"]):
            assert own["count"].max() - own["count"].min() <= 1, (place, list(own["count"]))
    assert {"explained", "background"} <= set(counted["role"])


def every_class_is_asked_about(walk: Walk) -> None:
    """Samples as a method sees them: as many of each class, within one."""
    classes = walk.words.classes if walk.words.suite in SEEN else 2
    for role, own in walk.classes_seen.items():
        counts = own.bincount(minlength=classes)
        assert counts.max() - counts.min() <= 1, f"{role}: {counts.tolist()}"


def the_right_class_is_explained(walk: Walk) -> None:
    """What a method is asked about is what the network says: only what it gets right is explained, or what it says."""
    for question in walk.seen:
        wrong = question.model(question.x).argmax(1) != question.target
        assert not wrong.any(), f"{wrong.float().mean():.0%} are explained for another class than the network's"


def the_signal_lies_on_the_truth(walk: Walk) -> None:
    """A network that has learned what the truth says has a gradient there, and a random map has not."""
    signal = walk.mean(walk.words.signal)
    chance = walk.mean("random")
    assert signal > 1.4 * chance, f"{signal:.3f} of {walk.words.signal} on the truth, {chance:.3f} by chance"


def the_truth_that_is_given_is_the_truth_that_is_scored(walk: Walk) -> None:
    """Maps come to the score as the method gave them, in the place and of the sample that it was asked about."""
    assert abs(walk.mean(spies.TELL) - 1) < 1e-9, f"the truth itself scores {walk.mean(spies.TELL):.3f}"


def explained_inputs_are_held_out(walk: Walk) -> None:
    """No explained input is among those that methods learn from, and these are most of the data."""
    for question in walk.seen:
        known = {tuple(row) for row in question.fit.flatten(1).tolist()}
        explained = {tuple(row) for row in question.x.flatten(1).tolist()}
        assert not known & explained, f"{len(known & explained)} explained inputs are training inputs"
        most = min(1000, walk.words.n // 2)
        assert len(known) >= most, f"methods learn from {len(known)} of {walk.words.n} samples"


Check = Callable[[Walk], None]
ANYWHERE: tuple[Check, ...] = (every_class_takes_part_evenly,)
ASKED: tuple[Check, ...] = (
    *ANYWHERE,
    every_class_is_asked_about,
    the_right_class_is_explained,
    explained_inputs_are_held_out,
)
PLACED: tuple[Check, ...] = (
    *ASKED,
    the_signal_lies_on_the_truth,
    the_truth_that_is_given_is_the_truth_that_is_scored,
)
CHECKS: dict[str, tuple[Check, ...]] = {
    **{"xaitris": PLACED, "planted": PLACED, "bias": ASKED},
    "articles": PLACED,
    "bam": (*ASKED, the_truth_that_is_given_is_the_truth_that_is_scored),
    "xor": (*ANYWHERE, the_right_class_is_explained),
    "rigid": (*ANYWHERE, the_truth_that_is_given_is_the_truth_that_is_scored),
}


def failures(name: str, walked: Walk) -> dict[str, str]:
    """check -> what it says, of those that the walk fails."""
    told = {}
    for check in CHECKS[name]:
        try:
            check(walked)
        except AssertionError as error:
            told[check.__name__] = str(error).splitlines()[0]
    return told
