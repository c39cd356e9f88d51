"""Where chance is reckoned: intervals, and claims of which many are made at once."""

from forsooth.stats.claims import SHARE, Interval, crossed, holm, mean_of, share_of

__all__ = ["SHARE", "Interval", "crossed", "holm", "mean_of", "share_of"]
