from forsooth.suites.articles.plan import SUITE

__all__ = ["SUITE"]
