"""Rows in; tables, figures and one page out. Reads what a run left and never computes a score again."""

from forsooth.report.aggregate import Results, read
from forsooth.report.leaderboard import leaderboard
from forsooth.report.page import write_page

__all__ = ["Results", "leaderboard", "read", "write_page"]
