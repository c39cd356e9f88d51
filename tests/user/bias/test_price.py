"""What a request costs is told before it begins; hopeless work is refused; leverage costs a tenth."""

import time
import warnings

import pytest
import torch
from torch import nn

import forsooth
from forsooth import attributions
from forsooth.progress import Silent
from forsooth.records import UsageError
from forsooth.seeds import generator, generators
from forsooth.user.bias import price
from forsooth.user.bias.prepare import prepare
from forsooth.user.bias.request import BiasRequest

METHODS = {method.name: method for method in attributions.METHODS}
LARGE = torch.rand(4, 3, 224, 224)
NET = nn.Sequential(nn.Conv2d(3, 2, 7, stride=16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))


class Listening(Silent):
    def __init__(self):
        self.heard = []

    def say(self, message):
        self.heard.append(message)


def subject(inputs=LARGE, model=NET, **words):
    return prepare(model.eval(), BiasRequest(model=model, inputs=inputs, **words))


def test_large_images_are_played_by_patches_and_small_ones_by_pixels():
    assert subject().seats.count == 64 and subject().request.players == "grid:8"
    assert subject(inputs=LARGE[:, :, :8, :8], model=nn.Sequential(nn.Flatten(), nn.Linear(192, 2))).seats.count == 64
    table = subject(inputs=torch.rand(4, 100), model=nn.Linear(100, 2))
    assert table.request.players == "pixels" and table.seats.count == 100


def test_fifty_million_forwards_a_map_are_refused_before_they_begin():
    with pytest.raises(UsageError, match=r"`budget` must be at least 401,400,016 for .* 50,176 pixels, got 50,000,000"):
        forsooth.bias(NET.eval(), LARGE, players="pixels")


def test_long_work_is_told_and_short_work_is_not(monkeypatch):
    monkeypatch.setattr(price, "seconds_of_one", lambda subject: 0.01)
    heard = Listening()
    methods = [METHODS[name] for name in ("gradient", "smooth_grad", "lime", "shapley_sampling", "random")]
    price.told(subject(anchor="permutations"), methods, heard, workers=2)
    assert heard.heard == [
        "Shapley values: 504,016 forwards (4 inputs, 63,002 for each, twice), about 42 min; methods: about 15,716, "
        "79 s; cheaper are fewer inputs, larger players (grid:N), fewer permutations or anchor leverage, at a fifth to "
        "a tenth of the forwards"
    ]
    heard.heard.clear()
    price.told(subject(anchor="leverage", permutations=50), [], heard, workers=2)
    assert heard.heard == []


def test_large_images_have_an_anchor_of_some_minutes_by_default():
    """Twenty inputs through a network of 6 ms were 2.7 hours of walks."""
    own = subject()
    assert (own.request.anchor, own.request.permutations, own.forwards()) == ("leverage", 200, 1262)
    assert 20 * 2 * own.forwards() * 0.006 < 6 * 60 and price.solving(own) < 10
    assert subject(anchor="leverage").forwards() == 6302
    assert subject(permutations=1000).request.anchor == "permutations"
    assert subject(anchor="permutations").forwards() == 63_002
    assert subject(players="grid:32", permutations=10).request.anchor == "permutations"
    small = subject(inputs=LARGE[:, :, :8, :8], model=nn.Sequential(nn.Flatten(), nn.Linear(192, 2)))
    assert (small.request.anchor, small.request.permutations) == ("permutations", 1000)


def test_days_of_work_are_refused_before_they_begin(monkeypatch):
    monkeypatch.setattr(price, "seconds_of_one", lambda subject: 20.0)
    with pytest.raises(
        UsageError, match=r"`budget_seconds` must be at least 201,9\d\d, about 56.1 h \(56.1 h for .*, got 86,400;"
    ):
        price.told(subject(), [], Listening(), workers=1)
    price.told(subject(budget_seconds=300_000), [], Listening(), workers=1)


def test_what_methods_ask_themselves_is_counted():
    """Against a model that counts the inputs it is asked about."""
    own = subject()
    for name in ("kernel_shap", "lime", "shapley_sampling", "pfi", "occlusion"):
        asked = price.forwards_of(METHODS[name], own)
        if name == "occlusion":
            assert asked == 64
            continue
        seen = []

        def counting(x, seen=seen):
            seen.append(len(x))
            return x.flatten(1)[:, :2]

        x = torch.rand(1, 64)
        draws = {"generator": generator(0, "a"), "generators": generators(0, "a", range(1)), "background": x}
        METHODS[name](counting, x, torch.tensor([0]), **draws)
        assert 0.4 < sum(seen) / asked < 1.5, name


def test_the_least_squares_itself_is_in_the_time():
    own = subject(players="grid:32", anchor="leverage")
    assert own.seats.count == 1024 and price.solving(own) > 60
    assert price.solving(subject(anchor="permutations")) == 0


def test_the_time_of_a_forward_is_measured():
    assert 0 < price.seconds_of_one(subject()) < 5


class Costly(nn.Module):
    """A call costs something by itself, whatever it is asked about, as the call of a forest does."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
        self.linear = nn.Linear(8, 2)

    def forward(self, x):
        time.sleep(self.seconds)
        return self.linear(x)


def test_what_a_call_costs_by_itself_is_shared_by_all_that_a_game_asks_at_once():
    assert price.seconds_of_one(subject(inputs=torch.rand(4, 8), model=Costly(0.05))) < 0.05 / 300


def test_leverage_is_an_anchor():
    inputs = torch.rand(12, 24, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(24, 12), nn.Tanh(), nn.Linear(12, 2)).eval()
    asked = {"methods": ["integrated_gradients", "gradient"], "permutations": 300}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        walks = forsooth.bias(net, inputs, **asked)
        squares = forsooth.bias(net, inputs, anchor="leverage", **asked)
    both = [answer.table.set_index("method")["m_bias"] for answer in (walks, squares)]
    assert (both[0] - both[1]).loc[["gradient", "random"]].abs().max() < 0.01
    assert "a least squares over 690 coalitions, 692 forward passes for an input" in squares.words
    assert both[1]["shapley"] < 2 * both[0]["shapley"] + 0.005


def test_what_was_kept_before_there_was_a_choice_still_serves():
    request = BiasRequest(model="own_models:FOREST", inputs="x.npy", anchor="permutations", permutations=1000)
    words = request.words()
    assert words is not None and not {"anchor", "budget", "budget_seconds"} & set(words)
    assert BiasRequest.of_words(words).anchor == "permutations"
    assert BiasRequest(model="own_models:FOREST", inputs="x.npy", anchor="leverage").words()["anchor"] == "leverage"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"anchor": "leverages"}, "did you mean leverage"),
        ({"budget": 0}, "`budget` must be a whole number"),
        ({"budget_seconds": 0}, "`budget_seconds` must be above 0"),
    ],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        forsooth.bias(NET, LARGE, **words)
