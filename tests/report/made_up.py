"""A made-up run folder: the rows, pictures and facts that a suite leaves, without a suite."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

SCENARIOS = ("LIN", "MULT", "RIGID", "XOR")
MODELS = ("LLR", "MLP", "CNN")
SHOWN = 3  # samples of a panel whose maps there are
NULLS = {"oracle": 1.0, "sobel": 0.52, "laplace": 0.55, "rectified_input": 0.4, "constant": 0.21, "random": 0.2}
GOODNESS = {
    **{"pattern_attribution": 0.78, "pattern_net": 0.76, "integrated_gradients": 0.7, "deep_shap": 0.69},
    **{"deep_lift": 0.69, "shapley_value_sampling": 0.68, "gradient_shap": 0.66, "input_x_gradient": 0.66},
    **{"lrp": 0.64, "deep_taylor": 0.6, "saliency": 0.58, "smooth_grad": 0.57, "guided_backprop": 0.5},
    **{"guided_grad_cam": 0.56, "deconvolution": 0.44, "pfi": 0.47, "kernel_shap": 0.36, "kernel_shap_1000": 0.63},
    **{"lime": 0.23, "lime_1000": 0.61},
}
METRICS = {
    "emd": {"better": "higher", "bounds": [0.0, 1.0], "cite": "clark2024xaitris"},
    "ima": {"better": "higher", "bounds": [0.0, 1.0], "cite": "clark2024xaitris"},
    "precision": {"better": "higher", "bounds": [0.0, 1.0], "cite": "clark2024xaitris"},
}
COMPLETE = ("integrated_gradients", "deep_lift", "deep_shap", "lrp")
STRATEGIES = {
    "truth": (1.0, 1.0, 1.0),
    "subset": (0.93, 1.0, 0.5),
    "outline": (0.86, 0.1, 0.0),
    "one pixel": (0.8, 1, 0.1),
}


def write(folder: Path, *, samples: int = 40, seeds: int = 2, backgrounds: int = 2, edge: int = 8) -> Path:
    """A run of four scenarios with all that can happen: skips, errors, zero maps, a model below its gate."""
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    names = ("WHITE", "CORR", "IMAGENET")[:backgrounds]
    rows: list[dict[str, object]] = []
    for scenario in SCENARIOS:
        for background in names:
            rows += _dataset(rng, scenario=scenario, background=background, samples=samples, seeds=seeds, edge=edge)
    rows += _sweep(rng, names, edge) + _strategies(edge)
    frame = pd.DataFrame(rows).assign(suite="xaitris")
    frame.to_parquet(folder / "scores.parquet")
    cells = frame["cell"].unique()
    pd.DataFrame({"cell": cells, "seconds": rng.uniform(0.1, 3, len(cells))}).to_parquet(folder / "timings.parquet")
    tensors, pictures = _pictures(rng, names, edge)
    save_file(tensors, folder / "pictures.safetensors")
    (folder / "run.json").write_text(json.dumps(_run(pictures, cells, edge)), encoding="utf-8")
    return folder


def row(part: str, **given: object) -> dict[str, object]:
    """A tidy row with the given columns; the others stand at their defaults."""
    plain = {"dataset": "", "model": "", "model_seed": 0, "method": "", "metric": "", "sample": -1, "value": np.nan}
    return {**plain, "part": part, "status": "ok", "message": "", "alpha": 0.1, "cell": "c0", **given}


def _dataset(
    rng: np.random.Generator, *, scenario: str, background: str, samples: int, seeds: int, edge: int
) -> list[dict[str, object]]:
    place = {"size": edge, "scenario": scenario, "background": background, "dataset": f"{scenario}-{background}-{edge}"}
    harder = {"LIN": 0.1, "MULT": 0.0, "RIGID": -0.25, "XOR": 0.05}[scenario] - 0.1 * (background == "CORR")
    ease = rng.normal(0, 0.05, samples)
    rows = []
    for name, mean in NULLS.items():
        edgy = 0.15 if scenario == "RIGID" and name in ("sobel", "laplace") else 0.0
        rows += _scores(rng, name, mean + edgy, place | {"model": "none"}, ease)
    for model in MODELS if scenario == "LIN" else MODELS[1:]:
        for seed in range(seeds):
            key = place | {"model": model, "model_seed": seed}
            accuracy = float(np.clip(rng.normal(0.93, 0.03), 0, 1))
            gated = (scenario, background, model, seed) == ("XOR", "CORR", "CNN", 0)
            rows.append(
                row(
                    "training",
                    **key,
                    metric="accuracy",
                    value=0.61 if gated else accuracy,
                    cell=f"t{key}",
                    status="below gate" if gated else "ok",
                    message="accuracy 0.61 under the gate 0.8" if gated else "",
                )
            )
            for name, mean in () if gated else GOODNESS.items():
                rows += _explained(rng, name, mean + harder + rng.normal(0, 0.015), key, ease)
    return rows


def _explained(
    rng: np.random.Generator, name: str, mean: float, key: dict[str, object], ease: np.ndarray
) -> list[dict[str, object]]:
    if name == "guided_grad_cam" and key["model"] != "CNN":
        return [row("scores", **key, method=name, status="skipped", message="needs a convolutional layer")]
    if name == "pfi" and key["scenario"] == "MULT" and key["model"] == "CNN":
        return [row("scores", **key, method=name, status="error", message="<b>boom</b> & ValueError: bad shape")]
    return _scores(rng, name, mean, key, ease)


def _scores(
    rng: np.random.Generator, name: str, mean: float, key: dict[str, object], ease: np.ndarray
) -> list[dict[str, object]]:
    rows, cell = [], f"{name}-{sorted(map(str, key.values()))}"
    zero = rng.random(len(ease)) < (0.4 if name == "lime" else 0.0)
    for k, (metric, shift) in enumerate({"emd": 0.15, "ima": 0.0, "precision": 0.05}.items()):
        values = (
            np.clip(rng.normal(mean + shift, 0.08, len(ease)) + ease, 0, 1) if name != "oracle" else np.ones(len(ease))
        )
        for sample, value in enumerate(values):
            lost = (
                {"value": np.nan, "status": "zero map", "message": "every attribution is 0"}
                if zero[sample]
                else {"value": value}
            )
            rows.append(row("scores", **key, **lost, method=name, metric=metric, sample=sample, cell=cell))
        if name in COMPLETE and k == 0:
            rows += [
                row("scores", **key, method=name, metric="gap", sample=s, value=g, cell=cell)
                for s, g in enumerate(np.abs(rng.normal(0, 1e-6, len(ease))))
            ]
    return rows


def _sweep(rng: np.random.Generator, backgrounds: tuple[str, ...], edge: int) -> list[dict[str, object]]:
    rows = []
    for scenario in SCENARIOS:
        for background in backgrounds:
            for model in MODELS:
                for alpha in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9):
                    for seed in range(3):
                        up = (
                            1
                            / (1 + np.exp(-(alpha - 0.25 + 0.1 * (model == "CNN")) * 15))
                            * (model != "LLR" or scenario == "LIN")
                        )
                        value = float(np.clip(0.5 + 0.5 * up + rng.normal(0, 0.02), 0, 1))
                        rows.append(
                            row(
                                "sweep",
                                size=edge,
                                scenario=scenario,
                                background=background,
                                model=model,
                                model_seed=seed,
                                metric="accuracy",
                                alpha=alpha,
                                status="ok" if value >= 0.8 else "below gate",
                                value=value,
                                cell="s",
                            )
                        )
    return rows


def _strategies(edge: int) -> list[dict[str, object]]:
    return [
        row(
            "strategies",
            size=edge,
            scenario="LIN",
            background="",
            model="none",
            method=name,
            metric=metric,
            sample=0,
            value=value,
        )
        for name, values in STRATEGIES.items()
        for metric, value in zip(METRICS, values, strict=True)
    ]


def _truth(edge: int) -> np.ndarray:
    block, mask = edge // 8, np.zeros((edge, edge), dtype=np.float32)
    for top, left in ((1, 1), (2, 1), (3, 1), (2, 2), (4, 5), (5, 5), (6, 5), (6, 6)):
        mask[top * block : (top + 1) * block, left * block : (left + 1) * block] = 1
    return mask


def _pictures(
    rng: np.random.Generator, backgrounds: tuple[str, ...], edge: int
) -> tuple[dict[str, np.ndarray], list[dict[str, object]]]:
    tensors, pictures, truth = {}, [], _truth(edge)

    def add(array: np.ndarray, **facts: object) -> None:
        name = f"p{len(tensors)}"
        tensors[name] = array.astype(np.float32)
        pictures.append({"tensor": name, "size": edge, "label": 0, "model": "none", "method": "", **facts})

    for scenario in SCENARIOS:
        for background in backgrounds:
            where = {"scenario": scenario, "background": background}
            add(truth * 0.5 + rng.normal(0, 0.4, (1, edge, edge)), kind="input", **where)
            add(truth, kind="truth", **where)
            for model in ("none", *(MODELS if scenario == "LIN" else MODELS[1:])):
                for name, good in (NULLS if model == "none" else GOODNESS).items():
                    if name == "guided_grad_cam" and model != "CNN":
                        continue
                    noise = rng.normal(0, 1, (1, edge, edge))
                    lost = name == "lime" and model == "CNN"
                    add(
                        0 * noise if lost else good * truth + (1 - good) * noise,
                        kind="example",
                        model=model,
                        method=name,
                        **where,
                    )
                    if scenario != "RIGID":
                        add(
                            good * truth + 0.2 * (1 - good) * np.abs(noise),
                            kind="global",
                            model=model,
                            method=name,
                            **where,
                        )
    for name in STRATEGIES:
        add(truth * (rng.random((edge, edge)) < 0.7), kind="strategy", method=name, scenario="LIN", background="")
    for picture in [shown for shown in pictures if shown["kind"] in ("input", "truth", "example")]:
        for place in range(1, SHOWN):  # further samples of the same panels
            array = tensors[str(picture["tensor"])]
            add(np.roll(array, place, axis=-1), **{**picture, "place": place, "tensor": f"p{len(tensors)}"})
    return tensors, pictures


def _classes(edge: int) -> list[dict[str, object]]:
    """How many samples of each kind took part, by dataset and role."""
    lines = []
    for scenario in SCENARIOS:
        kinds = ("++", "--", "+-", "-+") if scenario == "XOR" else ("T", "L")
        for background in ("WHITE", "CORR"):
            where = {"size": edge, "scenario": scenario, "background": background}
            for role, count in (("explained", 12), ("background", 100)):
                lines += [{**where, "role": role, "class": kind, "count": count // len(kinds)} for kind in kinds]
    return lines


def _run(pictures: list[dict[str, object]], cells: np.ndarray, edge: int) -> dict[str, object]:
    methods = {
        name: {
            "null": False,
            "cite": "sundararajan2017axiomatic",
            "settings": {"steps": 50} if name in COMPLETE else {},
            "promise": "complete" if name in COMPLETE else None,
            "signed": name != "saliency",
            "needs": ["layer", "module"] if name == "guided_grad_cam" else ["gradient"],
        }
        for name in GOODNESS
    }
    methods |= {
        name: {"null": True, "cite": "clark2024xaitris", "settings": {}, "promise": None, "signed": False}
        for name in NULLS
    }
    return {
        "suite": "xaitris",
        "title": "XAI-TRIS: do explanations find the pixels that matter?",
        "preset": "quick",
        "seed": 0,
        "command": "forsooth run xaitris --preset quick --seed 0",
        "settings": {"gate": 0.8, "samples": 40, "variant": "paper"},
        "versions": {"forsooth": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
        "hardware": {"cpu": "2 cores", "memory": "8 GiB", "device": "cpu"},
        "started": "2026-01-02T03:04:05",
        "seconds": 312.5,
        "factors": ["size", "scenario", "background", "model"],
        "metrics": METRICS,
        "methods": methods,
        "pictures": pictures,
        "classes": _classes(edge),
        "cells": [f"{k:040x}" for k in range(len(cells))],
        "exhibits": ["accuracies", "boxes", "examples", "globals", "accuracy_by_alpha", "strategies"],
        "facts": [
            "IMAGENET backgrounds are generated dead leaves, not photographs.",
            f"Images are {edge}×{edge} pixels.",
        ],
    }
