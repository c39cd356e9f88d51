"""The way from data to a board, walked through the public API with methods that watch it, and what must hold on it.

Every check takes a walk and raises AssertionError where the way is wrong. `test_way.py` holds sound walks against
them, `test_planted_failures.py` walks in which something was broken on purpose.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import spies

import forsooth

METHODS = ("saliency", "integrated_gradients", "smooth_grad", "lime", "pfi", "random")


@dataclass(frozen=True)
class Words:
    """What `forsooth.run` is asked: the smallest run in which the networks still learn what they must.

    n        samples of the dataset; 0: the suite makes several
    classes  that must take part, as many as there are of the least of them
    methods  asked in this order
    """

    suite: str
    n: int
    classes: int
    settings: dict[str, Any]
    only: dict[str, str]
    methods: tuple[Any, ...]


TETROMINO = {"n": 3000, "alpha": 0.3, "samples": 40, "sweep": (), "trainings": 1, "metrics": ("ima",)}
PLANTED = {
    **{"per_class": 300, "side": 32, "strength": 6, "trainings": 1, "samples": 8, "gate": 0.0, "metrics": ("attr",)},
    **{"manipulations": ("watermark",), "manipulations_followup": (), "levels": (), "r_values": ()},
    **{"restarts": 0, "epochs": 3},
}
TABLE = {"datasets": ("suppressor",), "models": ("linear",), "samples": 10, "players": ("input",), "trainings": 1}
BAM = {
    **{"side": 32, "scenes": 20, "cutouts": 40, "train": 1, "val": 1, "test": 2, "epochs": 1, "gate": 0.0},
    **{"fine_train": 5, "fine_val": 3, "fine_test": 4, "samples": 20, "samples_expensive": 10, "samples_per_k": 4},
    **{"placings": ("as_built",), "trials": 5, "ks": (1.0,), "examples": 10, "random_sets": 3, "samples_robustness": 4},
}
ARTICLES = {
    **{"sizes": (150, 20, 20), "samples": 6, "gate": 0.0, "gate_reinforce": 0.0, "epochs": 1, "length": 60},
    **{"rates_article": (), "rates_halves": (), "kinds": ("Article",)},
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
    "articles": Words("articles", 0, 2, ARTICLES, {"model": "attention"}, ("gradient", "random", "oracle")),
    "bam": Words("bam", 0, 10, BAM, {}, ("gradient", "random")),
}


@dataclass(frozen=True)
class Walk:
    """A finished run, and what its methods were asked."""

    words: Words
    run: forsooth.Run
    seen: tuple[spies.Question, ...]

    @property
    def question(self) -> spies.Question:
        """The one behind the ranked scores; checkpoints of a training are asked about later."""
        assert self.seen, "no method was asked"
        return self.seen[0]

    @property
    def scores(self) -> pd.DataFrame:
        rows = self.run.rows
        return rows[rows["part"].eq("scores") & rows["sample"].ge(0)]

    def mean(self, method: str) -> float:
        """Of the scores of a method, which are shares of its map on the truth."""
        own = self.scores[self.scores["method"].eq(method) & self.scores["metric"].isin(("ima", "attr"))]
        return float(own["value"].mean())

    @property
    def classes(self) -> pd.DataFrame:
        return pd.DataFrame(json.loads((self.run.folder / "run.json").read_text())["classes"])


def walk(words: Words, folder: Path, **changes: Any) -> Walk:
    """The run of these words in a new folder, on one processor."""
    spies.SEEN.clear()
    asked = {"methods": words.methods, "only": words.only, "settings": words.settings, "device": "cpu", **changes}
    run = forsooth.run(words.suite, out=folder, page=False, **asked)
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
    """Targets as a method sees them: as many of each class, within one."""
    counts = walk.question.target.bincount(minlength=2)
    assert counts.max() - counts.min() <= 1, counts.tolist()


def the_right_class_is_explained(walk: Walk) -> None:
    """What a method is asked about is what the network says, since only what it gets right is explained."""
    question = walk.question
    wrong = question.model(question.x).argmax(1) != question.target
    assert not wrong.any(), f"{wrong.float().mean():.0%} are explained for another class than the network's"


def the_signal_lies_on_the_truth(walk: Walk) -> None:
    """A network that has learned what the truth says has a gradient there, and a random map has not."""
    signal, chance = walk.mean(spies.WATCH), walk.mean("random")
    assert signal > 1.4 * chance, f"{signal:.3f} of the gradient on the truth, {chance:.3f} by chance"


def the_truth_that_is_given_is_the_truth_that_is_scored(walk: Walk) -> None:
    """Maps come to the score as the method gave them, in the place and of the sample that it was asked about."""
    assert abs(walk.mean(spies.TELL) - 1) < 1e-9, f"the truth itself scores {walk.mean(spies.TELL):.3f}"


def explained_inputs_are_held_out(walk: Walk) -> None:
    """No explained input is among those that methods learn from, and these are most of the data."""
    known = {tuple(row) for row in walk.question.fit.flatten(1).tolist()}
    explained = {tuple(row) for row in walk.question.x.flatten(1).tolist()}
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
    **{"xor": (*ANYWHERE, the_right_class_is_explained), "articles": ANYWHERE, "bam": ANYWHERE},
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
