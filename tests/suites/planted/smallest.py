"""The planted suite at the smallest scale at which networks still learn the artefact, and data and rows by hand."""

from typing import Any

import pandas as pd

from forsooth.datasets.manipulations import draw
from forsooth.datasets.plain_images import Images
from forsooth.datasets.planted import Border
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.questions import Ask

METHODS = ("saliency", "gradient_shap_5", "lime_25", "random", "constant", "oracle", "own_methods:raises")
TINY = {
    **{"per_class": 120, "side": 32, "strength": 6, "trainings": 2, "samples": 5, "gate": 0.7, "metrics": ("attr",)},
    **{"manipulations": ("center_brightness", "watermark"), "manipulations_followup": ("watermark",)},
    **{"levels": (2, 4), "r_values": (0.5, 1.0), "restarts": 0, "epochs": 8},
}
LEAVES = Images(None, None, classes=3, per_class=120, side=32, seed=0)
PAIR = ("discs", "strata")  # the first and the third of them


def spec_of(
    name: str = "watermark", *, images: Images = LEAVES, pair: Any = None, r: float = 0.5, border: bool = False
) -> DataSpec:
    """An artefact of section 5.1 on a few dead leaves."""
    painted = Border() if border else None
    return DataSpec(images, pair, draw(name, 1, seed=0), r, painted, seed=5)


def ask_of(method: str = "saliency", **changes: Any) -> Ask:
    """A question on four images of each presence."""
    plain: dict[str, Any] = {"method": method, "version": 1, "code": "", "samples": 4, "presences": ("with", "without")}
    plain |= {"output": "logits", "metrics": {"attr": 1}, "checkpoints": False, "show": False}
    return Ask(**{**plain, "seed": 3, "device": "cpu", **changes})


def columns_of(part: str = "scores", **more: Any) -> dict[str, Any]:
    """What rows of a task share."""
    plain = {"manipulation": "watermark", "level": 0, "model_seed": 0, "experiment": "5.1", "kind": "similar"}
    return {**plain, "visibility": 13.0, "r": 0.5, "pair": "a/b", "part": part, **more}


def image_rows(values: dict[str, list[float]], **more: Any) -> pd.DataFrame:
    """Rows of a run: one image with the artefact of one model for each value of a method."""
    plain = {"experiment": "5.1", "part": "scores", "metric": "attr", "model": "m", "manipulation": "watermark"}
    plain |= {"kind": "similar", "level": 0, "r": 0.5, "presence": "with", "epoch": 3, "accuracy": 0.99, "er": 0.4}
    plain |= {"status": "ok", "message": "", "sample": 0, "dataset": "leaves", "cell": "c", "p_star": None}
    rows = []
    for method, own in values.items():
        for k, value in enumerate(own):
            rows.append({**plain, "method": method, "model_seed": k, "value": value, **more})
    return pd.DataFrame(rows)


def training_rows(values: list[float], **more: Any) -> pd.DataFrame:
    """Rows of trainings that counted, by their accuracies."""
    plain = {"part": "training", "metric": "accuracy", "presence": None, "p_star": 0.5, "sample": -1}
    return image_rows({"": values}, **plain, **more)
