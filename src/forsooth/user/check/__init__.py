"""Does my own method keep the contract that every method of the catalogue keeps? Small networks tell in seconds."""

from forsooth.user.check.request import CheckRequest
from forsooth.user.check.result import CheckResult
from forsooth.user.check.work import answer

__all__ = ["CheckRequest", "CheckResult", "answer"]
