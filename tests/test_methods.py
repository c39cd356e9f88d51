"""Every method of the catalogue is tried alike, given exactly what it declares."""

import inspect
from collections.abc import Callable, Sequence

import pytest
import torch
from attributions import nets
from torch import Tensor, nn

from forsooth.attributions import METHODS as CATALOGUE
from forsooth.attributions.attending import ATTENDING
from forsooth.attributions.intrinsic import INTRINSIC
from forsooth.attributions.nulls import NULLS
from forsooth.records import Method
from forsooth.seeds import generator, generators

METHODS = tuple(method for method in CATALOGUE if method not in (*INTRINSIC, *ATTENDING))  # those need attention
TARGET = torch.tensor([0, 1, 1, 0])
CNN = nets.drawn(nets.cnn())
MLP = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(64, 2)))
IMAGES, TABLE = nets.inputs(4, 1, 8, 8), nets.inputs(4, 6)
BY_NAME = {method.name: method for method in METHODS}
WINDOWED = {"rise", "sobol_indices", "occlusion_windows"}
SUPERPIXELS = {"lime_superpixels", "lime_quickshift_200"}
ONLY_IMAGES = {"sobel", "sobel_released", "laplace", "blur_ig", "xrai"} | SUPERPIXELS | WINDOWED
CAMS = {"hires_cam", "layer_cam", "xgrad_cam", "grad_cam_plus_plus", "score_cam"}
OF_ATTENTION = {method.name for method in ATTENDING}
ON_LAYERS = {"grad_cam", "guided_grad_cam", "token_grad_cam"} | CAMS
OWN = {"attention": ("attention",), "rationale": ("rationale_relaxed", "rationale_reinforce")}
SMOOTHED = {"smooth_grad", "smooth_grad_50", "smooth_grad_absolute", "smooth_grad_squared"}
DERIVATIVES = {"gradient", "saliency", "guided_backprop", "deconvolution", "var_grad"} | SMOOTHED
LIMES = {"lime", "lime_25", "lime_superpixels", "lime_quickshift_200"}
HIDING = {"kernel_shap", "kernel_shap_25", "pfi", "shapley_sampling", "occlusion"} | LIMES
HIDING |= {"leverage_shap", "score_cam"} | WINDOWED
QUADRATIC = {"kernel_shap", "kernel_shap_25", "leverage_shap", "lime", "lime_25"}
EXPENSIVE = {"integrated_gradients_smooth", "integrated_gradients_smooth_squared"}
EXACT_ON_LINEAR = (
    "gradient_x_input",
    "integrated_gradients",
    "gradient_shap_5",
    "shapley_sampling",
    "kernel_shap",
    "leverage_shap",
    "guided_ig",
    "deep_lift",
    "deep_shap_zero",
)


def explained(
    method: Method,
    model: nn.Module,
    x: Tensor,
    target: Tensor,
    *,
    seed: int = 0,
    samples: Sequence[int] | None = None,
) -> Tensor:
    """The map, with everything a method may ask for at hand; `Method.__call__` passes on what it declares."""
    shape = tuple(x.shape[1:])
    return method(
        model,
        x,
        target,
        background=nets.inputs(5, *shape, seed=7).to(x),
        fit=nets.inputs(40, *shape, seed=8).to(x),
        generator=generator(seed, method.name),
        generators=generators(seed, method.name, range(len(x)) if samples is None else samples),
        layer="3",
        truth=x > 0,
    )


def network(method: Method) -> nn.Module:
    return CNN if "layer" in method.needs else MLP


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def every(methods: tuple[Method, ...] | list[Method]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("method", methods, ids=lambda method: method.name)


def test_names_are_unique_and_the_nulls_are_there() -> None:
    assert len(BY_NAME) == len(METHODS)
    assert all(method in METHODS for method in NULLS)
    assert {method.name for method in METHODS if method.null} == {method.name for method in NULLS}


@every(METHODS)
def test_the_record_says_what_the_function_takes(method: Method) -> None:
    parameters = inspect.signature(method.function).parameters
    handed = {need for need in method.needs if need not in ("gradient", "module")}
    assert list(parameters)[:3] == ["model", "x", "target"]
    knobs = {name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY}
    required = {name for name in knobs if parameters[name].default is inspect.Parameter.empty}
    assert len(knobs) == len(parameters) - 3
    assert required <= handed | set(method.settings) <= knobs
    assert method.random == ("generators" in method.needs)
    assert method.cite and method.version >= 1


@every(METHODS)
@pytest.mark.parametrize("model", [MLP, CNN], ids=["mlp", "cnn"])
def test_the_map_has_the_shape_of_the_input(method: Method, model: nn.Module) -> None:
    if "layer" in method.needs and model is MLP:
        pytest.skip("the perceptron has no convolution")
    x, state = IMAGES.clone(), {name: value.clone() for name, value in model.state_dict().items()}
    ours = explained(method, model, x, TARGET)
    assert ours.shape == x.shape and ours.dtype == torch.float64 and ours.device == x.device
    assert ours.isfinite().all()
    assert method.signed or (ours >= 0).all()
    assert not ours.requires_grad and ours.data_ptr() != x.data_ptr()
    assert torch.equal(x, IMAGES), "the input was changed"
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not model.training and not any(module._forward_hooks for module in model.modules())


@every(METHODS)
def test_single_precision_stays_single(method: Method) -> None:
    model = network(method)
    single = explained(method, model.float(), IMAGES.float(), TARGET)
    double = explained(method, model.double(), IMAGES, TARGET)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), double, rtol=1e-2, atol=1e-3 * double.abs().max().item())


@every(METHODS)
def test_the_same_seed_gives_the_same_map(method: Method) -> None:
    model = network(method)
    ours = explained(method, model, IMAGES, TARGET)
    assert torch.equal(ours, explained(method, model, IMAGES, TARGET))
    if method.random:
        assert not torch.equal(ours, explained(method, model, IMAGES, TARGET, seed=1))


@every(METHODS)
def test_a_map_does_not_depend_on_its_neighbours(method: Method) -> None:
    model = network(method)
    ours = explained(method, model, IMAGES, TARGET)
    for row in range(len(IMAGES)):
        alone = explained(method, model, IMAGES[row : row + 1], TARGET[row : row + 1], samples=[row])
        torch.testing.assert_close(alone[0], ours[row], rtol=1e-7, atol=1e-9)


@every(CATALOGUE)
def test_abilities_are_among_the_allowed(method: Method) -> None:
    assert method.inputs and set(method.inputs) <= {"image", "table", "words"}
    assert len(set(method.inputs)) == len(method.inputs)
    assert method.cost in ("passes", "forwards", "expensive")
    assert method.values in ("derivative", "contribution")
    assert method.output in (None, "logits", "probabilities")
    assert not method.blind or method.null
    assert not method.hides or method.cost == "forwards"
    assert not method.quadratic or "players" in inspect.signature(method.function).parameters
    assert method.units is None or "layer" in method.needs
    base = method.variant_of
    assert not base or (BY_NAME[base].name != method.name and not BY_NAME[base].variant_of)


def named(holds: Callable[[Method], bool]) -> set[str]:
    return {method.name for method in CATALOGUE if holds(method)}


def test_records_say_what_lists_of_names_said() -> None:
    """The lists stood in suites and doors. Three variants of SmoothGrad and occlusion were missing in some of them."""
    assert named(lambda method: method.values == "derivative") == DERIVATIVES
    assert named(lambda method: method.hides) == HIDING
    assert named(lambda method: method.cost == "forwards") == HIDING | {"pattern_local"}
    assert named(lambda method: method.cost == "expensive") == EXPENSIVE
    assert named(lambda method: method.inputs == ("image",)) == ONLY_IMAGES | ON_LAYERS
    assert named(lambda method: "table" not in method.inputs) == ONLY_IMAGES | ON_LAYERS | set(OWN) | OF_ATTENTION
    assert named(lambda method: method.inputs == ("words",)) == set(OWN)
    assert {method.name: method.belongs_to for method in CATALOGUE if method.belongs_to} == OWN
    assert named(lambda method: method.blind) == {"random", "constant"}
    assert named(lambda method: "truth" in method.needs) == {"oracle"}
    assert named(lambda method: method.units is not None) == {"grad_cam"}
    assert named(lambda method: method.quadratic) == QUADRATIC
    assert named(lambda method: method.output == "probabilities") == LIMES


@pytest.mark.parametrize("base", ["smooth_grad", "gradient_shap", "lime", "kernel_shap", "lrp", "sobel"])
def test_variants_know_the_method_that_they_are_a_setting_of(base: str) -> None:
    family = named(lambda method: base in (method.name, method.variant_of))
    assert family == named(lambda method: method.name.startswith(base)) and len(family) > 1


def test_units_are_the_map_before_it_is_enlarged() -> None:
    cam = BY_NAME["grad_cam"]
    assert cam.units is not None
    small = cam.units(CNN, IMAGES, TARGET, layer="3")
    assert small.ndim == 3 and len(small) == len(IMAGES)
    enlarged = nn.functional.interpolate(small[:, None], size=IMAGES.shape[2:], mode="bilinear")
    assert torch.equal(explained(cam, CNN, IMAGES, TARGET), enlarged)


@every([method for method in METHODS if "table" in method.inputs])
def test_tables_are_explained_too(method: Method) -> None:
    ours = explained(method, nets.drawn(nets.mlp(6, 2)), TABLE, TARGET)
    assert ours.shape == TABLE.shape and ours.isfinite().all()


@every([method for method in METHODS if not {"gradient", "module"} & set(method.needs)])
def test_forwards_alone_are_enough(method: Method) -> None:
    """Any callable will do, and none is asked for a gradient."""

    def predict(x: Tensor) -> Tensor:
        assert not torch.is_grad_enabled()
        return torch.from_numpy(MLP(x).numpy()).softmax(dim=1)

    assert explained(method, predict, IMAGES, TARGET).isfinite().all()
    with torch.inference_mode():
        assert explained(method, predict, IMAGES, TARGET).isfinite().all()


@every([BY_NAME[name] for name in EXACT_ON_LINEAR])
def test_a_linear_model_is_explained_by_weight_times_input(method: Method) -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    expected = model[1].weight.detach()[TARGET].view_as(IMAGES) * IMAGES
    torch.testing.assert_close(explained(method, model, IMAGES, TARGET), expected, rtol=0, atol=1e-6)


def test_gradient_shap_with_zeros_behind_it_too() -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    expected = model[1].weight.detach()[TARGET].view_as(IMAGES) * IMAGES
    own = generators(0, "gradient_shap", range(len(IMAGES)))
    ours = BY_NAME["gradient_shap"](model, IMAGES, TARGET, background=torch.zeros(3, 1, 8, 8), generators=own)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)


def test_lime_follows_a_linear_model_and_25_samples_do_not() -> None:
    model = nets.drawn(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)))
    expected = model[1].weight.detach()[TARGET].view_as(IMAGES) * IMAGES
    for name, follows in (("lime", True), ("lime_25", False), ("kernel_shap_25", False)):
        ours = explained(BY_NAME[name], model, IMAGES, TARGET)
        for row in range(len(IMAGES)):
            both = torch.stack([ours[row].flatten(), expected[row].flatten()])
            assert (torch.corrcoef(both)[0, 1] > 0.95) == follows


@every([method for method in METHODS if method.promise is not None])
def test_promises_are_kept(method: Method) -> None:
    """On a network without shifts, where conserving and being complete are one, and where outputs are positive."""
    model, x = nets.without_shifts(MLP), nets.inputs(12, 1, 8, 8, seed=4)
    given, target = model(x).detach().max(dim=1)
    x, target, given = x[given > 0], target[given > 0], given[given > 0]
    assert len(x) > 5
    tolerance = 2e-2 if method.name == "integrated_gradients" else 1e-6  # fifty steps across kinks
    if method.promise == "complete to background":
        background = nets.inputs(5, 1, 8, 8, seed=7)  # as in `explained`
        given = given - model(background).detach()[:, target].mean(0)
    assert nets.gap(explained(method, model, x, target), given) < tolerance
