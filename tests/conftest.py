"""Property tests try the same examples in every run: what passes here passes on the next machine."""

from hypothesis import settings

settings.register_profile("house", derandomize=True)
settings.load_profile("house")
