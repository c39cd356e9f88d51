"""The published tables and figures that can be made again. [zhou2022feature]"""

from forsooth.suites.articles import reproduce_attention, reproduce_post_hoc, reproduce_rationales, reproduce_selections

REPRODUCTIONS = (
    *reproduce_attention.REPRODUCTIONS,
    *reproduce_rationales.REPRODUCTIONS,
    *reproduce_selections.REPRODUCTIONS,
    *reproduce_post_hoc.REPRODUCTIONS,
)
