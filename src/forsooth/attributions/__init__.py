"""Model, inputs and target in; a map shaped like the inputs out."""

from dataclasses import replace

from forsooth.attributions.attending import ATTENDING, TOKEN_GRAD_CAM
from forsooth.attributions.cam import CAM
from forsooth.attributions.cams import CAMS
from forsooth.attributions.differences import DIFFERENCES
from forsooth.attributions.gradients import GRADIENTS
from forsooth.attributions.guided import GUIDED
from forsooth.attributions.intrinsic import INTRINSIC
from forsooth.attributions.leverage import LEVERAGE
from forsooth.attributions.local_patterns import LOCAL_PATTERNS
from forsooth.attributions.nulls import NULLS
from forsooth.attributions.occlusion import OCCLUSION
from forsooth.attributions.paths import PATHS
from forsooth.attributions.patterns import PATTERNS
from forsooth.attributions.permutation import PERMUTATION
from forsooth.attributions.propagation import LRP, PROPAGATION
from forsooth.attributions.rise import MASKED
from forsooth.attributions.segments import SEGMENTS
from forsooth.attributions.shapley import SHAPLEY
from forsooth.attributions.superpixels import SUPERPIXELS
from forsooth.attributions.surrogates import SURROGATES
from forsooth.attributions.ways import WAYS
from forsooth.attributions.windows import WINDOWS
from forsooth.records import Method

# A published setting. A stabiliser this large absorbs relevance in every layer, so nothing is promised.
LRP_EPSILON_1 = replace(LRP, name="lrp_epsilon_1", settings={"epsilon": 1.0}, promise=None, variant_of=LRP.name)

METHODS: tuple[Method, ...] = (
    *GRADIENTS,
    *PATHS,
    *WAYS,
    *SEGMENTS,
    *GUIDED,
    *CAM,
    *CAMS,
    TOKEN_GRAD_CAM,
    *ATTENDING,
    *PROPAGATION,
    LRP_EPSILON_1,
    *DIFFERENCES,
    *PATTERNS,
    *LOCAL_PATTERNS,
    *SHAPLEY,
    *LEVERAGE,
    *SURROGATES,
    *SUPERPIXELS,
    *PERMUTATION,
    *OCCLUSION,
    *WINDOWS,
    *MASKED,
    *INTRINSIC,
    *NULLS,
)
