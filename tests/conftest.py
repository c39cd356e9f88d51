"""Property tests try the same examples in every run: what passes here passes on the next machine."""

import pytest
from hypothesis import settings

from forsooth.engine import one_thread

settings.register_profile("house", derandomize=True)
settings.load_profile("house")


@pytest.fixture(scope="module")
def single():
    """One thread, as tasks have: small networks are slower on several."""
    with one_thread():
        yield
