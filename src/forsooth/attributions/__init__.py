"""Model, inputs and target in; a map shaped like the inputs out."""

from dataclasses import replace

from forsooth.attributions.cam import CAM
from forsooth.attributions.differences import DIFFERENCES
from forsooth.attributions.gradients import GRADIENTS
from forsooth.attributions.guided import GUIDED
from forsooth.attributions.intrinsic import INTRINSIC
from forsooth.attributions.nulls import NULLS
from forsooth.attributions.occlusion import OCCLUSION
from forsooth.attributions.paths import PATHS
from forsooth.attributions.patterns import PATTERNS
from forsooth.attributions.permutation import PERMUTATION
from forsooth.attributions.propagation import LRP, PROPAGATION
from forsooth.attributions.shapley import SHAPLEY
from forsooth.attributions.superpixels import SUPERPIXELS
from forsooth.attributions.surrogates import SURROGATES
from forsooth.records import Method

# A published setting. A stabiliser this large absorbs relevance in every layer, so nothing is promised.
LRP_EPSILON_1 = replace(LRP, name="lrp_epsilon_1", settings={"epsilon": 1.0}, promise=None, variant_of=LRP.name)

METHODS: tuple[Method, ...] = (
    *GRADIENTS,
    *PATHS,
    *GUIDED,
    *CAM,
    *PROPAGATION,
    LRP_EPSILON_1,
    *DIFFERENCES,
    *PATTERNS,
    *SHAPLEY,
    *SURROGATES,
    *SUPERPIXELS,
    *PERMUTATION,
    *OCCLUSION,
    *INTRINSIC,
    *NULLS,
)
