"""Model, inputs and target in; a map shaped like the inputs out."""

from forsooth.attributions.cam import CAM
from forsooth.attributions.differences import DIFFERENCES
from forsooth.attributions.gradients import GRADIENTS
from forsooth.attributions.guided import GUIDED
from forsooth.attributions.nulls import NULLS
from forsooth.attributions.paths import PATHS
from forsooth.attributions.patterns import PATTERNS
from forsooth.attributions.permutation import PERMUTATION
from forsooth.attributions.propagation import PROPAGATION
from forsooth.attributions.shapley import SHAPLEY
from forsooth.attributions.surrogates import SURROGATES
from forsooth.records import Method

METHODS: tuple[Method, ...] = (
    *GRADIENTS,
    *PATHS,
    *GUIDED,
    *CAM,
    *PROPAGATION,
    *DIFFERENCES,
    *PATTERNS,
    *SHAPLEY,
    *SURROGATES,
    *PERMUTATION,
    *NULLS,
)
