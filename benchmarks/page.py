"""The page of a large run: 60 methods, 6 nulls, 100 panels, a million rows. Prints seconds, peak memory and megabytes.

The run is made up and written first; then a process of its own writes the page, so that its memory is the page's alone.

Run: python benchmarks/page.py [--methods 60] [--rows 1000000] [--keep DIR]
"""

import argparse
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors.numpy import save_file

from forsooth.attributions import METHODS
from forsooth.records import NO_MODEL
from forsooth.runs import described_method, write_page

SCENARIOS = ("LIN", "MULT", "RIGID", "XOR", "RING")
BACKGROUNDS = ("WHITE", "CORR", "IMAGENET", "STRIPES", "NOISE")
MODELS = ("LLR", "MLP", "CNN", "ViT")
FACTORS = ("scenario", "background", "model")
METRICS = ("emd", "ima", "precision")
TRAININGS = 2
EDGE = 28  # pixels of a map
SHOWN = 2  # samples of a panel whose maps the page shows


def records(count: int) -> dict[str, dict[str, object]]:
    """Nulls of the catalogue and so many methods, those of the catalogue first, as run.json has them."""
    nulls = {method.name: described_method(method) for method in METHODS if method.null}
    own = [method for method in METHODS if not method.null][:count]
    methods = {method.name: described_method(method) for method in own}
    blank = described_method(own[0])
    methods |= {f"my_package.methods:method_{k}": blank for k in range(count - len(own))}
    return methods | dict(list(nulls.items())[:6])


def scores(methods: dict[str, dict[str, object]], rows: int) -> pd.DataFrame:
    """So many rows of all methods, panels, metrics, trainings and samples, with a few zero maps."""
    rng = np.random.default_rng(0)
    asked = sum(1 if about["null"] else len(MODELS) * TRAININGS for about in methods.values())
    samples = -(-rows // (len(SCENARIOS) * len(BACKGROUNDS) * len(METRICS) * asked))
    goodness = dict(zip(methods, rng.uniform(0.2, 0.8, len(methods)), strict=True))
    frames = []
    for scenario, background in itertools.product(SCENARIOS, BACKGROUNDS):
        for name, about in methods.items():
            networks = [(NO_MODEL, 0)] if about["null"] else list(itertools.product(MODELS, range(TRAININGS)))
            for (model, training), metric in itertools.product(networks, METRICS):
                value = np.clip(rng.normal(goodness[name], 0.1, samples), 0, 1)
                lost = rng.random(samples) < 0.01
                frames.append(
                    pd.DataFrame(
                        {
                            "scenario": scenario,
                            "background": background,
                            "model": model,
                            "model_seed": training,
                            "method": name,
                            "metric": metric,
                            "sample": np.arange(samples),
                            "value": np.where(lost, np.nan, value),
                            "status": np.where(lost, "zero map", "ok"),
                            "message": np.where(lost, "every attribution is 0", ""),
                            "cell": f"{name}-{scenario}-{background}-{model}-{training}",
                        }
                    )
                )
    return pd.concat(frames, ignore_index=True).assign(suite="xaitris", part="scores", dataset="")


def pictures(methods: dict[str, dict[str, object]]) -> tuple[dict[str, np.ndarray], list[dict[str, object]]]:
    """Maps of a few samples of every panel."""
    rng = np.random.default_rng(1)
    tensors: dict[str, np.ndarray] = {}
    index: list[dict[str, object]] = []

    def add(**about: object) -> None:
        name = f"p{len(tensors)}"
        tensors[name] = rng.normal(0, 1, (EDGE, EDGE)).astype(np.float16)
        index.append({"tensor": name, "label": 0, **about})

    for scenario, background in itertools.product(SCENARIOS, BACKGROUNDS):
        for place in range(SHOWN):
            where = {"scenario": scenario, "background": background, "place": place}
            for kind in ("input", "truth"):
                add(kind=kind, model=NO_MODEL, method="", **where)
            for model, name in itertools.product(MODELS, methods):
                add(kind="example", model=model, method=name, **where)
    return tensors, index


def write_run(folder: Path, *, methods: int, rows: int) -> int:
    """The files of the made-up run; says how many rows there are."""
    known = records(methods)
    frame = scores(known, rows)
    frame.to_parquet(folder / "scores.parquet")
    tensors, index = pictures(known)
    save_file(tensors, folder / "pictures.safetensors")
    about = {
        "suite": "xaitris",
        "title": "A made-up run, as large as runs become",
        "factors": list(FACTORS),
        "metrics": {name: {"better": "higher", "bounds": [0.0, 1.0], "cite": "clark2024xaitris"} for name in METRICS},
        "methods": known,
        "pictures": index,
        "cells": sorted(frame["cell"].unique()),
        "exhibits": ["boxes", "examples"],
    }
    (folder / "run.json").write_text(json.dumps(about))
    return len(frame)


def measure(folder: Path) -> None:
    """Write the page of the run in `folder` and print what it took."""
    begun = time.perf_counter()
    busy = time.process_time()
    page = write_page(folder)
    seconds = time.perf_counter() - begun
    busy = time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seconds:.1f} s ({busy:.1f} s of processor), {peak:.2f} GiB at most, {page.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keep", type=Path, help="folder for the run and its page")
    parser.add_argument("--measure", type=Path, help="write the page of this run alone")
    given = parser.parse_args()
    if given.measure:
        return measure(given.measure)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{write_run(folder, methods=given.methods, rows=given.rows):,} rows")
        subprocess.run([sys.executable, __file__, "--measure", str(folder)], check=True)


if __name__ == "__main__":
    main()
