"""All that can be made again of [anonymous2023evaluation], and what we ask beside."""

from forsooth.suites.bias import (
    reproduce_assumptions,
    reproduce_audits,
    reproduce_patches,
    reproduce_relation,
    reproduce_stability,
    reproduce_suppressor,
    reproduce_tables,
    reproduce_tabular,
)

REPRODUCTIONS = (
    *reproduce_tables.REPRODUCTIONS,
    *reproduce_tabular.REPRODUCTIONS,
    *reproduce_assumptions.REPRODUCTIONS,
    *reproduce_stability.REPRODUCTIONS,
    *reproduce_relation.REPRODUCTIONS,
    *reproduce_suppressor.REPRODUCTIONS,
    *reproduce_patches.REPRODUCTIONS,
    *reproduce_audits.REPRODUCTIONS,
)
