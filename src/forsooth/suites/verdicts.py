"""What intervals say of a published claim."""

import numpy as np

from forsooth.stats import SHARE, Interval, crossed, holm, mean_of, share_of

__all__ = ["SHARE", "Interval", "above", "around", "crossed", "holm", "mean_of", "share_of", "verdict"]


def verdict(claim: str, found: Interval, *, holds: bool, fails: bool, more: str = "") -> str:
    """One line: the claim, our number, and whether it holds; "cannot be told" where the interval says neither."""
    said = "holds" if holds else "does not hold" if fails else "cannot be told"
    return f"{claim}: {said}. Ours {found}{'; ' + more if more else ''}."


def above(claim: str, found: Interval, limit: float = 0.0, more: str = "") -> str:
    """The verdict on "more than `limit`"."""
    return verdict(claim, found, holds=found.low > limit, fails=found.high <= limit, more=more)


def around(claim: str, found: Interval, published: float, more: str = "") -> str:
    """A published number beside ours: they agree where our interval holds it, and does not hold all from 0 to twice it.

    >>> around("a share", Interval(0.5, 0.0, 1.0, 2), 0.4)
    'a share: cannot be told. Ours 0.50 [0.00, 1.00], n = 2; published 0.40.'
    """
    inside = found.low <= published <= found.high
    vague = not np.isfinite(found.low) or (found.low <= 0 and found.high >= 2 * published)
    said = "cannot be told" if vague else "agrees" if inside else "differs"
    return f"{claim}: {said}. Ours {found}; published {published:.2f}{', ' + more if more else ''}."
