from forsooth.suites.xaitris.plan import SUITE

__all__ = ["SUITE"]
