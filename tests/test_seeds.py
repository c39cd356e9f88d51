import torch
from hypothesis import given
from hypothesis import strategies as st

from forsooth.seeds import derive, generator


@given(st.integers(), st.lists(st.text(), min_size=1, max_size=3))
def test_a_derived_seed_fits_torch_and_repeats(seed, names):
    value = derive(seed, *names)
    assert 0 <= value < 2**63
    assert value == derive(seed, *names)


def test_names_are_kept_apart():
    assert derive(0, "ab", "c") != derive(0, "a", "bc")
    assert derive(0, "x", 1) != derive(1, "x", 0)


def test_streams_are_independent_of_each_other_and_of_the_global_generator():
    state = torch.random.get_rng_state()
    a = torch.randn(4000, generator=generator(0, "a"))
    b = torch.randn(4000, generator=generator(0, "b"))
    assert abs(torch.corrcoef(torch.stack([a, b]))[0, 1]) < 0.08  # five standard errors
    assert torch.equal(state, torch.random.get_rng_state())
