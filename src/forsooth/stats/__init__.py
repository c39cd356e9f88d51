"""Where chance is reckoned: intervals, bootstraps, correlations, tests, and boards. Suites, `user` and report call it.

    intervals     means, shares and ratios of variances, over samples or over samples and trainings
    bootstrap     draws as counts, of samples and trainings
    correlations  Pearson's and Spearman's, with intervals
    claims        tests of single claims, and families that are judged together
    boards        scores, ranks and tie groups; made of panels, samples, trainings, spread and differences, as follows

**The score** of a method is the mean over panels of the median θ over samples and trainings. Beside it we write what
samples and trainings that were not drawn could have made of it. Three things vary in a panel of S samples and T
trainings: samples (an easy image is easy for every network), trainings (a good network is good on every image) and
what is left. As for a mean in a crossed table, the variance of the median is

    V = (A - E)₊ + B

    A  what samples do: the median moves by h · u when a sample moves, with u(s) the mean over trainings of
       sign(y(s, t) - θ) / 2 and h the slope of the quantile function around 1/2, a secant over the range that the
       interval itself spans (Woodruff 1952); A = h² var(u) / S
    E  what is left, found in A and in B alike and so taken off once: the same of u(s, t) - u(s) - u(t)
    B  what trainings do: the variance of the medians of single trainings, divided by T

Panels of one dataset share samples, and panels of one network share trainings: what they share is added before it is
squared. All methods meet the same samples and the same networks, so that a difference of two methods has the same
three parts, of h₁u₁ - h₂u₂ and of the paired differences of medians. A network with one training has the mean B of
the others; where all have one, B is unknown, the interval is over samples alone, and the page says so.

**Degrees of freedom.** Student's t, with Satterthwaite's (1946) degrees of freedom for sums of variances: those of A
from the kurtosis of u (a sign has a known variance, and many degrees), those of B from T - 1 in each panel (Welch
1947). Fewer than 25 samples do not show their kurtosis: there A has n - 2 degrees at most, unless u are signs and no
more. With few trainings B is often small by chance, and then Satterthwaite's are too many: we reckon them with an upper
confidence bound of B in its place, 70 % for intervals and 99 % for claims. `benchmarks/chance.py intervals` shows what
that does, with two to ten trainings and five to 200 samples: 0.926 to 0.979 of the 95 % intervals hold the truth, and
98 % of cells lie in 0.93 to 0.97. The lowest is compatible with 0.93, since the simulation itself errs by ± 0.008.

**Many claims.** Every pair on a board is compared, and every method with every null in every panel. Their p-values
are corrected by Holm (1979), so that a board of equal methods names any difference at all in at most 5 % of cases,
however the methods depend on each other. Rank intervals come from the same comparisons, and hold for all methods at
once (Mohamad, Goeman and van Zwet 2022). No p-value from n samples is smaller than 2 · 2⁻ⁿ, what n signs alone can
say without a law for the scores; and there is no claim at all where trainings have fewer than three degrees of
freedom. For claims B is raised to what other methods and panels make likely (`trainings.steadied`), and in a single
panel it is at least the mean of all.

A published claim that is asked in many places (of each method, panel or kind of data) is a family as well: an
`Estimate` has the p-value of any limit, from the law that makes its interval, and `claims.surely_above`,
`surely_below` and `directions` correct them by Holm, 2.5 % to each side. The interval printed beside a verdict is of
that one number alone.

Holm 1979, Scandinavian Journal of Statistics 6. Mohamad, Goeman, van Zwet 2022, Biometrics 78. Owen 2007, Annals of
Applied Statistics 1 (a bootstrap of rows and columns triples E). Satterthwaite 1946, Biometrics Bulletin 2. Welch
1947, Biometrika 34. Westfall and Young 1993, Resampling-Based Multiple Testing (their max-T would gain 2 % of width
over Holm on 24 methods, and needs draws). Woodruff 1952, Journal of the American Statistical Association 47.
"""

from forsooth.stats.claims import holm
from forsooth.stats.intervals import (
    SHARE,
    Interval,
    crossed_interval,
    mean_interval,
    samples_and_trainings,
    share_interval,
    variance_ratio_interval,
)

__all__ = [
    "SHARE",
    "Interval",
    "crossed_interval",
    "holm",
    "mean_interval",
    "samples_and_trainings",
    "share_interval",
    "variance_ratio_interval",
]
