from forsooth.suites.bias.plan import SUITE

__all__ = ["SUITE"]
