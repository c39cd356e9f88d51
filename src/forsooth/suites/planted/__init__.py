from forsooth.suites.planted.plan import SUITE

__all__ = ["SUITE"]
