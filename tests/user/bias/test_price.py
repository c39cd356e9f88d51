"""What a request costs is told before it begins; hopeless work is refused; leverage costs a tenth."""

import time
import warnings

import pytest
import torch
from torch import nn

import forsooth
from forsooth.progress import Silent
from forsooth.records import UsageError
from forsooth.user.bias import price
from forsooth.user.bias.prepare import prepare
from forsooth.user.bias.request import BiasRequest

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
    price.told(subject(), heard, workers=2)
    assert heard.heard == [
        "Shapley values: 504,016 forwards (4 inputs, 63,002 for each, twice), about 42 min; cheaper are fewer inputs, "
        "larger players (grid:N) or anchor leverage, at a fifth to a tenth of the forwards"
    ]
    heard.heard.clear()
    price.told(subject(anchor="leverage", permutations=100), heard, workers=2)
    assert heard.heard == []


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
    request = BiasRequest(model="own_models:FOREST", inputs="x.npy")
    words = request.words()
    assert words is not None and "anchor" not in words and "budget" not in words
    assert BiasRequest(model="own_models:FOREST", inputs="x.npy", anchor="leverage").words()["anchor"] == "leverage"


@pytest.mark.parametrize(
    ("words", "message"),
    [({"anchor": "leverages"}, "did you mean leverage"), ({"budget": 0}, "`budget` must be a whole number")],
)
def test_wrong_words_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        forsooth.bias(NET, LARGE, **words)
