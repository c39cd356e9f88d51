"""The verdict on the summary of section 5: the three metrics rank one method differently, in most draws."""

from collections.abc import Mapping, Sequence

from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import Facts
from forsooth.stats.bootstrap import DRAWS, ENDS, draws_of_ranks
from forsooth.stats.intervals import Floats
from forsooth.suites.bam.settings import METRICS, PUBLISHED
from forsooth.suites.verdicts import outcome
from forsooth.wording import paragraphs

VG = "gradient"
SURE = 0.95  # share of draws in which a claim on ranks must hold
FEWEST_MAPS = 3


def claims_summary(table: DataFrame, rows: DataFrame) -> list[str]:
    """Whether the gradient ranks high in IDR and IIR and low in MCS.

    table  metric, method and value
    rows   of all metrics, as they take part
    """
    title = "Section 5, summary."
    wide = table.pivot_table(index="method", columns="metric", values="value")
    maps = wide[wide.index.isin(PUBLISHED)].dropna()
    if not set(METRICS) <= set(maps) or VG not in maps.index or len(maps) < FEWEST_MAPS:
        return [title]
    ranks = maps.rank(ascending=False, method="min").loc[VG].astype(int).to_dict()
    draws = DataFrame(rank_draws(rows, VG, list(maps.index))).dropna()
    return [title, complementary(ranks, draws, len(maps))]


def complementary(ranks: Mapping[str, int], draws: DataFrame, count: int) -> str:
    """The verdict, from ranks by metric and from draws of them, of `count` maps, in complementary.jinja."""
    found: Facts = {"ranks": ranks, "maps": count, "result": "", "draws": DRAWS}
    if len(draws):
        upper = draws <= count / 2  # half of the ranks
        share = (upper["idr"] & upper["iir"] & ~upper["mcs"]).mean()
        ends = draws.quantile(list(ENDS), interpolation="nearest").astype(int)
        found |= {"share": share, "ends": ends, "result": outcome(share >= SURE, share <= 1 - SURE)}
    return " ".join(paragraphs(__package__, "complementary.jinja", **found))


def rank_draws(rows: DataFrame, method: str, methods: Sequence[str]) -> dict[str, Floats]:
    """Draws of a method's rank in each metric; nan where one of the methods has a single image.

    MCS and IDR have the same images; those of IIR are others.
    """
    trainings = sorted(rows["model_seed"].unique())
    rows = only(rows, part="samples", mask="object", method=methods)
    pools = [without(rows, metric="iir"), only(rows, metric="iir")]
    return draws_of_ranks(pools, method, methods, trainings=trainings)
