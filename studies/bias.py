"""The figures of `studies/bias.md`: python studies/bias.py PART FOLDER --data DIR [--device cuda] writes them there.

Parts: `tables` (3 to 7: about eleven minutes on one H200), `variants` (Table 3 under other readings of the paper),
`deep-shap` (likewise, of DeepSHAP alone), `layers` (Grad-CAM on other layers),
`orders` (how far the order of methods in Tables 5 and 8 to 12 hangs on the images, from runs under FOLDER),
`voc` (Table 10 and others, with training), `audits` (Fig. 3, appendix N), `small` (all that two cores do in minutes).
DIR holds CIFAR-10 with the ResNet weights, Pascal VOC and tables. Stopped, a part goes on where it was.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import forsooth
from forsooth import papers
from forsooth.counted import counted
from forsooth.progress import Lines
from forsooth.scores.bias import M_BIAS
from forsooth.suites.bias.reproduce_tables import CIFAR, VOC, published
from forsooth.suites.bias.reproduce_words import orders
from forsooth.suites.bias.settings import PUBLISHED
from forsooth.suites.bias.tables import KEY, LIKE

# What the paper leaves open, one reading changed at a time.
VARIANTS: dict[str, dict[str, Any]] = {
    "as in the table": {},
    "probabilities": {"output": "probabilities"},
    "zero baseline": {"baseline": "zero"},
    "channel means": {"baseline": "channel_mean"},
    "largest magnitude, no sign": {"channels": "max_abs"},
    "sum of colours": {"channels": "sum"},
    "ties by number": {"ties": "first"},
    "100 permutations": {"permutations": 100},
    "16 images": {"samples": 16},
}
# The same for DeepSHAP alone, which comes out with half of the published bias on LeNet.
DEEP_SHAP: dict[str, dict[str, Any]] = {
    "mean over 100 images": {},
    "one zero image": {"methods": ("deep_shap_zero",)},
    "one colour, mean over 100 images": {"one_colour": "all"},
    "one colour, one zero image": {"one_colour": "all", "methods": ("deep_shap_zero",)},
}


def reproduced(name: str, arguments: argparse.Namespace, **settings: Any) -> pd.DataFrame:
    """The table of a reproduction, whose run goes into the folder of the results; its verdict is printed."""
    table, words = forsooth.reproduce(
        name,
        data=arguments.data,
        device=arguments.device,
        workers=arguments.workers,
        out=arguments.folder / "reproductions",
        settings=settings,
        progress=Lines(),
    )
    print(name, settings, words, sep="\n", flush=True)
    return table


def keep(name: str, table: pd.DataFrame, arguments: argparse.Namespace) -> None:
    table.to_csv(arguments.folder / f"{name}.csv", index=False)


def variants(arguments: argparse.Namespace) -> pd.DataFrame:
    """How near Table 3 comes under each reading: the order of methods, and the size of the numbers."""
    lines = []
    for name, settings in VARIANTS.items():
        table = reproduced("bias/table-3", arguments, methods=PUBLISHED, **settings)
        both = table.dropna(subset=["published"])
        size = np.log(both["ours"] / both["published"]).abs()
        by = size.groupby(both["method"]).median().round(2).to_dict()
        near = {"median rho": orders(table)["rho"].median(), "median |log ratio|": size.median()}
        answering = table[table["failed"] < 1]  # LRP has no rule for the softmax of probabilities, and refuses
        near["median rho of those that answer"] = orders(answering)["rho"].median()
        lines.append({"reading": name, **near, **by})
    return pd.DataFrame(lines).round(3)


def deep_shap(arguments: argparse.Namespace) -> pd.DataFrame:
    """Ours over the published number of DeepSHAP on LeNet, by row, under each reading; few images are enough."""
    known = papers.table("bias_table_3").query("method == 'deep_shap'").set_index(["end", "fraction"])["value"]
    columns = {}
    for name, settings in DEEP_SHAP.items():
        few = {"samples": 6, "permutations": 60, "players": ("input",), "methods": ("deep_shap",), **settings}
        table = reproduced("bias/table-3", arguments, **few)
        columns[name] = table.set_index(["end", "fraction"])["ours"] / known
    return pd.DataFrame(columns).round(3).reset_index()


def layers(arguments: argparse.Namespace) -> pd.DataFrame:
    """Grad-CAM on the units of other layers, since the paper does not name the layer."""
    parts = []
    for number, names in ((3, ("conv1", "pool1", "conv2", "relu2", "pool2")), (4, ("layer1", "layer2", "layer3"))):
        for layer in names:
            few = {"samples": 16, "permutations": 300, "players": ("units",), "methods": ("grad_cam", "constant")}
            table = reproduced(f"bias/table-{number}", arguments, layer=layer, **few)
            parts.append(table[table["method"].eq("grad_cam")].assign(table=number, layer=layer))
    return pd.concat(parts)


def resampled_orders(folder: Path) -> Iterator[dict[str, Any]]:
    """The median ρ of a table's rows with its 95 % interval over images drawn again, from the stores under `folder`."""
    files = sorted(folder.rglob("store/**/rows.parquet"))
    tables = [pd.read_parquet(file) for file in files]
    rows = pd.concat([table for table in tables if "m_bias" in set(table.get("metric", []))])
    for number, net in {5: CIFAR[5], **VOC}.items():
        by_image = per_image(rows[rows["model"].eq(net)], number)
        if by_image.empty:
            continue
        generator = np.random.default_rng(0)
        draws = [generator.integers(by_image.shape[1], size=by_image.shape[1]) for _ in range(1000)]
        found = [median_rho(by_image.iloc[:, drawn], number) for drawn in draws]
        low, high = np.quantile(found, [0.025, 0.975])
        line = {"table": number, "network": net, "images": by_image.shape[1]}
        yield {**line, "median": median_rho(by_image, number), "low": low, "high": high}


def per_image(rows: pd.DataFrame, number: int) -> pd.DataFrame:
    """M_bias as Table `number` counts it, a line for each cell and a column for each image."""
    rows = rows[rows["metric"].eq("m_bias")]
    compared = rows["player"].eq("input")
    if number in CIFAR:  # of patches Grad-CAM is no part of the order
        compared |= rows["method"].eq("grad_cam")
    counted_rows = counted(rows[compared], M_BIAS, within=LIKE)
    return counted_rows.pivot_table(index=KEY, columns="sample", values="value")


def median_rho(by_image: pd.DataFrame, number: int) -> float:
    """The median over rows of ρ between the order of the means over images and the published one."""
    ours = by_image.mean(axis=1).rename("ours").reset_index()
    return float(orders(ours.merge(published(number), on=KEY))["rho"].median())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part", choices=("tables", "variants", "deep-shap", "layers", "orders", "voc", "audits", "small")
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default=None)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="numbers of tables, separated by commas")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    only = [int(number) for number in arguments.only.split(",") if number]
    if arguments.part == "tables":
        for number in only or range(3, 8):
            keep(f"table-{number}", reproduced(f"bias/table-{number}", arguments), arguments)
    elif arguments.part == "voc":
        for number in only or range(8, 13):
            keep(f"table-{number}", reproduced(f"bias/table-{number}", arguments), arguments)
    elif arguments.part == "variants":
        keep("variants", variants(arguments), arguments)
    elif arguments.part == "orders":
        keep("orders", pd.DataFrame(resampled_orders(arguments.folder)).round(3), arguments)
    elif arguments.part == "layers":
        keep("layers", layers(arguments), arguments)
    elif arguments.part == "deep-shap":
        keep("deep-shap", deep_shap(arguments), arguments)
    elif arguments.part == "audits":
        for name in ("figure-3", "appendix-n"):
            keep(name, reproduced(f"bias/{name}", arguments), arguments)
    else:
        for name in ("table-13", "figure-8", "figure-4b", "figure-5", "proposition-1", "figure-6", "table-14"):
            keep(name, reproduced(f"bias/{name}", arguments), arguments)


if __name__ == "__main__":
    main()
