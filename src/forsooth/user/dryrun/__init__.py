"""The dry run: artefacts that the user fears, planted in the user's images, and methods that must show them.

For every artefact all images get a new label by the throw of a coin, and those of label 1 get the artefact: it alone
tells the label. A model that is right beyond chance uses it, and a good map of that model lies on it [zhou2022feature].
"""

from forsooth.user.dryrun.request import DryRunRequest
from forsooth.user.dryrun.result import DryRun
from forsooth.user.dryrun.work import answer

__all__ = ["DryRun", "DryRunRequest", "answer"]
