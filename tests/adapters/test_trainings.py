"""The user's training function: its path, its call, and what it gives."""

import own_trainings
import pytest
import torch
from torch import nn

from forsooth.adapters import trainings
from forsooth.records import Dataset, UsageError

X = torch.rand(4, 3, 8, 8)
DATA = Dataset("d", X, torch.zeros(4, dtype=torch.int64), None, {"train": torch.arange(4)})


def test_a_path_is_found_for_functions_of_a_module():
    assert trainings.training_path(own_trainings.learns) == "own_trainings:learns"
    assert trainings.training_path("a.b:c") == "a.b:c" and trainings.training_path(None) is None
    assert trainings.model_name("a.b:c") == "a.b.c"


@pytest.mark.parametrize("train", [lambda data: None, nn.Identity(), nn.Identity, "no_colon"])
def test_paths_that_are_none(train):
    with pytest.raises(UsageError, match="`train` must be"):
        trainings.training_path(train)


def test_an_error_of_the_training_names_it():
    with pytest.raises(trainings.FailedTraining, match="own_trainings:raises raised ValueError: no more memory"):
        trainings.call_training("own_trainings:raises", DATA)
    with pytest.raises(trainings.FailedTraining, match="must return a torch module, got the class ByHeart"):
        trainings.call_training("own_trainings:gives_a_class", DATA)


def test_a_model_is_made_ready():
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2)).double().train()
    ready = trainings.ready_model("a:b", model, X, device="cpu")
    assert not ready.training and not any(weight.requires_grad for weight in ready.parameters())
    assert ready(X).dtype == torch.float32


class Recorded(nn.Module):
    """Gives a dict, as many libraries do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))

    def forward(self, x):
        return {"loss": None, "logits": self.net(x)}


def test_a_model_that_gives_a_dict_is_asked_for_its_logits():
    model = Recorded()
    ready = trainings.ready_model("a:b", model, X, device="cpu")
    torch.testing.assert_close(ready(X), model.net(X))
    assert not any(part.training for part in ready.modules())


@pytest.mark.parametrize(
    "model, message",
    [
        (
            nn.Sequential(nn.Flatten(), nn.Linear(192, 3)),
            r"must give 2 logits for an image, one for each .*got 3",
        ),
        (nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(192, 2)), "must leave its input as it is"),
        (nn.Sequential(nn.Flatten(), nn.Linear(7, 2)), "must take inputs of shape"),
    ],
)
def test_models_that_cannot_be_asked(model, message):
    with pytest.raises(trainings.FailedTraining, match=f"a:b gave a model that cannot be asked: .*{message}"):
        trainings.ready_model("a:b", model, X - 0.5, device="cpu")
