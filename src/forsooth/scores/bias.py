"""How far is a map off where nobody knows the truth? M_bias [anonymous2023evaluation]: groups of players as the anchor.

In the paper's letters: a is the map under judgement, A the Shapley values, S the players with the highest (lowest) a,
and β_S the mean of A / ‖A‖ over S. Players are judged, not entries: bring a to one number per player first.

The sign of λ: equation 2 scales a map by λ = (y - b) / Σa, so that it sums to what the network gains over an empty
input, and equation 3 is written twice, with λ a on its left side and with a on its right, "λ eliminated". The sides are
equal only for λ > 0. Where Σa has the other sign than y - b, λ < 0 turns the map on the left round: λ a / ‖λ a‖ is
-a / ‖a‖. We compute the right side, as printed: a map is never turned round, S holds its own highest (lowest) values,
and a map whose sum points the wrong way is judged as it stands. So is one that sums to 0, where λ does not exist.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.records import Metric, UsageError
from forsooth.scores.jackknife import jackknife
from forsooth.scores.maps import check_maps
from forsooth.scores.norms import means_over, over_root, scaled, squared_norms

FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
ENDS = ("top", "bottom")
PAIRS = tuple((end, fraction) for end in ENDS for fraction in FRACTIONS)
NORMS = ("plain", "split")
TIES = ("share", "first")


@dataclass(frozen=True)
class Bias:
    """M_bias of every sample, before any mean over samples; nan where undefined.

    value   (n,) |first - anchor|
    error   (n,) standard error of the anchor from the sampling of permutations; 0 where the Shapley values are exact
    first   (n,) what the map itself gives to S: mean of a / ‖a‖ over S, signed
    anchor  (n,) what the Shapley values give to S: β_S, signed
    """

    value: Tensor
    error: Tensor
    first: Tensor
    anchor: Tensor


class GroupMeans(NamedTuple):
    """What a map and the Shapley values give to one group S.

    first   (n,) mean of a / ‖a‖ over S
    anchor  (n,) β_S
    left    (n, g) β_S without each group of permutations
    """

    first: Tensor
    anchor: Tensor
    left: Tensor


def m_bias(
    attribution: Tensor, shapley: Estimate, *, fraction: float, end: str, norm: str = "plain", ties: str = "share"
) -> Bias:
    """How far the mean of a map over its top (bottom) players is from that of the Shapley values, both of length 1.

    attribution  (n, players) real, signed
    shapley      of the same inputs and players
    fraction     |S| / players, in (0, 1)
    end          "top": S holds the highest signed values; "bottom": the lowest
    norm         "plain": ‖A‖ as estimated; "split": without the noise, see `squared_norms`
    ties         see `chosen`
    returns      (n,) each; nan for a map that is all zero or not finite, for Shapley values that are, for a norm that
                 is not positive after the noise is taken off, and for all samples where `too_few` has a reason

    Equation 3 of [anonymous2023evaluation] for one group S: |mean of a / ‖a‖ over S - β_S|. Norms are L2: a
    constant map then gives 1 / √players, which the published LIME columns sit on. A value below about one standard
    error says no more than "small", since the modulus of noise is never zero.
    """
    return all_biases(attribution, shapley, pairs=((end, fraction),), norm=norm, ties=ties)[end, fraction]


def m_bias_split(attribution: Tensor, shapley: Estimate, *, fraction: float, end: str) -> Bias:
    """`m_bias` with the noise of sampled Shapley values taken off their norm, which it makes too large.

    Shapes as there; nan where no norm is left.
    """
    return m_bias(attribution, shapley, fraction=fraction, end=end, norm="split")


def relative_bias(attribution: Tensor, shapley: Estimate, *, fraction: float, end: str) -> Bias:
    """`m_bias` times √players, so that games of any size can be compared: 1 is what a constant map gives a player."""
    plain = m_bias(attribution, shapley, fraction=fraction, end=end)
    root = attribution.shape[1] ** 0.5
    return Bias(root * plain.value, root * plain.error, root * plain.first, root * plain.anchor)


def all_biases(
    attribution: Tensor,
    shapley: Estimate,
    *,
    pairs: Sequence[tuple[str, float]] = PAIRS,
    norm: str = "plain",
    ties: str = "share",
) -> dict[tuple[str, float], Bias]:
    """`m_bias` for each (end, fraction) of `pairs`: the ten of the paper by default, from one sort and one norm."""
    one_of("norm", norm, NORMS)
    same_shape(attribution, shapley.values, "the Shapley values")
    shapley = scaled(shapley)
    groups = group_means(attribution, shapley, squared_norms(shapley, norm), pairs=pairs, ties=ties)
    return {pair: bias_of(group, shapley) for pair, group in zip(pairs, groups, strict=True)}


def bias_of(group: GroupMeans, shapley: Estimate) -> Bias:
    """|first - anchor| of one group, with the error of the anchor."""
    value = (group.first - group.anchor).abs()
    error = 0 * group.anchor
    if shapley.permutations:
        error = jackknife(group.anchor, group.left, shapley.sizes)
    return Bias(value, error.masked_fill(value.isnan(), torch.nan), group.first, group.anchor)


def replicates(
    maps: Sequence[Tensor], shapley: Estimate, *, pairs: Sequence[tuple[str, float]] = PAIRS
) -> tuple[Tensor, Tensor]:
    """M_bias of many maps, and what its mean over `pairs` is without each group of permutations.

    maps     (n, players) each, of the same inputs
    returns  (m, n, pairs) and (m, n, groups) float64; `jackknife_parts` makes an error of the second
    """
    shapley = scaled(shapley)
    norms = squared_norms(shapley, "plain")
    values = []
    left = []
    for attribution in maps:
        groups = list(group_means(attribution, shapley, norms, pairs=pairs))
        values.append(torch.stack([(group.first - group.anchor).abs() for group in groups], dim=1))
        left.append(torch.stack([(group.first[:, None] - group.left).abs() for group in groups]).mean(0))
    return torch.stack(values), torch.stack(left)


def group_means(
    attribution: Tensor,
    shapley: Estimate,
    norms: tuple[Tensor, Tensor],
    *,
    pairs: Sequence[tuple[str, float]],
    ties: str = "share",
) -> Iterator[GroupMeans]:
    """For each (end, fraction) of `pairs`, from one sort; `norms` are the `squared_norms`."""
    a = unit(attribution)
    ordered = ascending(attribution)
    for end, fraction in pairs:
        s = seats(attribution, ordered, fraction=fraction, end=end, ties=ties)  # (n, players), rows sum to |S|
        mean, means = means_over(s, shapley)
        yield GroupMeans((s * a).sum(1) / s.sum(1), over_root(mean, norms[0]), over_root(means, norms[1]))


def chosen(attribution: Tensor, *, fraction: float, end: str, ties: str = "share") -> Tensor:
    """Who is in S: the |S| players with the highest (lowest) signed values.

    attribution  (n, players) real
    ties         "share": players tied at the cut share the places that are left, which is the mean over all ways to
                 break the tie. LIME gives one value to a whole superpixel, and which of its pixels a sort happens to
                 take first must not matter; "first": the lower number first, as a stable sort does
    returns      (n, players) float64 in [0, 1], each row sums to |S| = `group_size`; nan where a row is not finite, and
                 everywhere where `too_few` has a reason
    """
    return seats(attribution, ascending(attribution), fraction=fraction, end=end, ties=ties)


def ascending(attribution: Tensor) -> Tensor:
    """The values of each row (n, players) in rising order, float64."""
    if attribution.ndim != 2:
        raise UsageError(f"`attribution` must have shape (n, players), got {tuple(attribution.shape)}")
    return attribution.detach().to(torch.float64).sort(dim=1).values


def seats(attribution: Tensor, ordered: Tensor, *, fraction: float, end: str, ties: str) -> Tensor:
    """`chosen`, given the rows of the attribution (n, players) in rising order, both (n, players)."""
    one_of("end", end, ENDS)
    one_of("ties", ties, TIES)
    a = attribution.detach().to(torch.float64)
    size = group_size(a.shape[1], fraction)
    if size == 0:
        return torch.full_like(a, torch.nan)
    sure, tied = divided(a, ordered, size, end)
    left = (size - sure.sum(1, keepdim=True)).to(torch.float64)  # integers would divide in single precision
    if ties == "share":
        share = tied * (left / tied.sum(1, keepdim=True))
    else:
        share = tied & (tied.cumsum(1) <= left)
    return (sure.to(torch.float64) + share).masked_fill(~a.isfinite().all(1, keepdim=True), torch.nan)


def divided(a: Tensor, ordered: Tensor, size: int, end: str) -> tuple[Tensor, Tensor]:
    """Who of a (n, players) is in S for sure, and who is tied with the last in S: (n, players) bool each."""
    if end == "top":
        last = ordered[:, -size, None]  # (n, 1)
        return a > last, a == last
    last = ordered[:, size - 1, None]
    return a < last, a == last


def group_size(players: int, fraction: float) -> int:
    """|S|: `fraction` of the players as Python rounds it; 0 where that is less than one player.

    >>> group_size(1024, 0.1), group_size(10, 0.1), group_size(9, 0.1)
    (102, 1, 0)
    """
    if not 0 < fraction < 1:
        raise UsageError(f"`fraction` must lie strictly between 0 and 1, got {fraction}")
    share = fraction * players
    if share < 1 - 1e-9:
        return 0
    return round(share)


def too_few(players: int, fraction: float) -> str:
    """Why the score is undefined for so few players; "" where it is defined.

    >>> too_few(8, 0.1)
    '10 % of 8 players is less than one player; it takes at least 10'
    """
    if group_size(players, fraction):
        return ""
    least = math.ceil(1 / fraction - 1e-9)
    return f"{100 * fraction:g} % of {players} players is less than one player; it takes at least {least}"


def accurate_bias(attribution: Tensor, shapley: Estimate, *, fraction: float, end: str, ties: str = "share") -> Tensor:
    """The other axis of Fig. 6: the mean over S of |a_i / ‖a‖ - A_i / ‖A‖|, player by player.

    attribution  (n, players) real, signed
    shapley      accurate: exact, or from very many permutations
    returns      (n,) never below `m_bias` with the same Shapley values; nan as there

    Exp. 2 says only that the accurate bias needs accurate Shapley values "just for a few input variables". We read: of
    the players in S, each by itself. The other reading, equation 3 with accurate values, is `m_bias` with an
    accurate estimate; but by Lemma 1 it is nearly M_bias itself, and the figure shows a loose relation.
    """
    same_shape(attribution, shapley.values, "the Shapley values")
    s = chosen(attribution, fraction=fraction, end=end, ties=ties)
    return (s * (unit(attribution) - unit(shapley.values)).abs()).sum(1) / s.sum(1)


def deep_shap_distance(
    attribution: Tensor, reference: Tensor, *, fraction: float, end: str, ranked_by: str = "attribution"
) -> Tensor:
    """Equation 3 with the map of DeepSHAP in place of the sampled Shapley values: the rival metric of Table 13.

    attribution  (n, players) real, signed; in Table 13 the exact Shapley values
    reference    (n, players) the map of DeepSHAP
    ranked_by    whose values choose S: "attribution" or "reference"
    returns      (n,) nan where one of the two is all zero or not finite

    Appendix L: "the average attribution over the top p-% attribution estimated by DeepSHAP". It must be "comparable
    with our metric", so by default S stays with the map under judgement, as in equation 3, and only the anchor changes.
    The sentence may also mean that DeepSHAP chooses S: that is "reference".
    """
    one_of("ranked_by", ranked_by, ("attribution", "reference"))
    same_shape(attribution, reference, "the reference")
    ranking = {"attribution": attribution, "reference": reference}[ranked_by]
    s = chosen(ranking, fraction=fraction, end=end)
    return (s * (unit(attribution) - unit(reference))).sum(1).abs() / s.sum(1)


def unit(values: Tensor) -> Tensor:
    """a / ‖a‖ over the last axis (…, players), float64: the α of Exp. 1; nan where all zero or not finite."""
    values = values.detach().to(torch.float64)
    values = values / values.abs().amax(-1, keepdim=True)  # keeps the squares finite whatever the scale of the map
    return values / values.square().sum(-1, keepdim=True).sqrt()


def same_shape(attribution: Tensor, other: Tensor, what: str) -> None:
    """Refuse an attribution that is not one number for each player of the other."""
    check_maps(attribution)
    if attribution.ndim != 2:
        raise UsageError(f"`attribution` must be of shape (n, players), got {tuple(attribution.shape)}")
    if attribution.shape != other.shape:
        came = tuple(attribution.shape)
        raise UsageError(f"`attribution` must have the shape of {what} {tuple(other.shape)}, got {came}")


def one_of(argument: str, word: str, words: tuple[str, ...]) -> None:
    """Refuse a word that is not on the list."""
    if word not in words:
        raise UsageError(f"`{argument}` must be one of {', '.join(words)}, got {word!r}")


def _record(name: str, function: Callable[..., Any]) -> Metric:
    bounds = (0.0, math.inf)  # at most 2 / √|S|, which depends on the players
    cite = "anonymous2023evaluation"
    return Metric(name, function, reads=("anchor",), better="lower", bounds=bounds, cite=cite, version=1)


M_BIAS = _record("m_bias", m_bias)
M_BIAS_SPLIT = _record("m_bias_split", m_bias_split)
RELATIVE_BIAS = _record("relative_bias", relative_bias)
