"""Images of mean 0 and spread 1."""

from dataclasses import replace

from forsooth.records import Dataset


def standardised(images: Dataset) -> Dataset:
    """Every channel with mean 0 and spread 1 over the training split, so that zero is the mean colour."""
    axes = (0, *range(2, images.x.ndim))
    train = images.x[images.splits["train"]]
    mean = train.mean(axes, keepdim=True)
    spread = train.std(axes, keepdim=True)
    return replace(images, x=(images.x - mean) / spread)
