"""Harsanyi dividends: what exactly the members of a coalition make together, and nobody else with them."""

from torch import Tensor

from forsooth.games.shapley import all_coalitions, players_of


def dividends(values: Tensor) -> Tensor:
    """D(T) = Σ_{S ⊆ T} (-1)^{|T| - |S|} v(S) for every coalition, by a fast Möbius transform. [harsanyi1963simplified]

    values   (n, 2^p), coalitions in the order of `all_coalitions`
    returns  (n, 2^p) float64, in the same order
    """
    result = values.double().clone()
    for player in range(players_of(values)):
        pairs = result.view(len(result), -1, 2, 2**player)  # without and with the player
        pairs[:, :, 1] -= pairs[:, :, 0]
    return result


def shapley_of(dividends: Tensor) -> Tensor:
    """Shapley values as evenly shared dividends: phi_i = Σ_{T with i} D(T) / |T|. Theorem 1, [anonymous2023evaluation]

    dividends  (n, 2^p)
    returns    (n, p) float64
    """
    members = all_coalitions(players_of(dividends)).double()  # (2^p, p)
    shares = members / members.sum(dim=1, keepdim=True).clamp(min=1)
    return dividends.double() @ shares.to(dividends.device)
