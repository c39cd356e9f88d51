from forsooth.suites.bam.plan import SUITE

__all__ = ["SUITE"]
