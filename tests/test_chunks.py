import platform
import resource

import pytest
import torch

from forsooth import chunks


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_slices_give_what_the_whole_gives(size):
    x, y = torch.randn(7, 2), torch.randn(7, 2)
    torch.testing.assert_close(chunks.over(torch.add, x, y, size=size), x + y)


def test_out_of_memory_halves_the_slice_and_goes_on():
    seen = []

    def hungry(x):
        seen.append(len(x))
        if len(x) > 3:
            raise torch.OutOfMemoryError("too much")
        return 2 * x

    x = torch.arange(10.0)
    torch.testing.assert_close(chunks.over(hungry, x, size=8), 2 * x)
    assert seen == [8, 4, 2, 2, 2, 2, 2]


def test_one_sample_too_large_is_an_error():
    def never(x):
        raise torch.OutOfMemoryError("too much")

    with pytest.raises(torch.OutOfMemoryError):
        chunks.over(never, torch.zeros(4), size=4)


def test_an_empty_batch_keeps_its_shape():
    assert chunks.over(lambda x: x.repeat(1, 2), torch.zeros(0, 3), size=4).shape == (0, 6)


def test_a_size_below_one_is_refused():
    with pytest.raises(ValueError, match="`size` must be at least 1, got 0"):
        chunks.over(lambda x: x, torch.zeros(4), size=0)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",
        "GET was unable to find an engine to execute this computation",
    ],
)
def test_libraries_that_find_no_memory_say_so_in_many_ways(words):
    def hungry(x):
        if len(x) > 1:
            raise RuntimeError(words)
        return x

    before = chunks.PRESSURE.halved
    assert torch.equal(chunks.over(hungry, torch.arange(4.0), size=4), torch.arange(4.0))
    assert chunks.PRESSURE.halved == before + 2  # 4 to 2, 2 to 1


def test_another_error_is_no_lack_of_memory():
    def broken(x):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="mat1"):
        chunks.over(broken, torch.zeros(4), size=4)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep memory by rules of their own")
def test_memory_that_was_freed_is_not_asked_for_again():
    chunks.keep_freed_memory()
    rounds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        pieces = [torch.zeros(2**18) for _ in range(20)]  # 20 MiB, 5,120 pages
        del pieces
        rounds.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert rounds[-1] < 500
