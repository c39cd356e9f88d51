"""What a network needs, by hand: outputs with a feature and without."""

import pytest
import torch

from forsooth.scores.verification import accuracy, accuracy_drop, confidence_rises, unfamiliar

LABEL = torch.tensor([0, 0, 1, 1])
SURE = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])  # the last is wrong
UNSURE = torch.tensor([[0.95, 0.05], [0.4, 0.6], [0.35, 0.65], [0.1, 0.9]])


def test_accuracies_and_their_drop_are_counted() -> None:
    assert accuracy(SURE, LABEL) == 0.75 and accuracy(UNSURE, LABEL) == 0.75
    assert accuracy_drop(SURE, UNSURE, LABEL) == 0.0
    assert accuracy_drop(SURE, 1 - SURE, LABEL) == 0.5
    assert accuracy_drop(SURE, 1 - SURE, LABEL) == accuracy(SURE, LABEL) - accuracy(1 - SURE, LABEL)


def test_of_the_correct_outputs_those_count_that_are_surer() -> None:
    assert confidence_rises(SURE, UNSURE, LABEL).tolist() == [True, False, False]
    assert confidence_rises(SURE, SURE, LABEL).tolist() == [False] * 3
    assert len(confidence_rises(1 - SURE, SURE, torch.tensor([0, 0, 1, 0]))) == 0


def test_unfamiliar_is_what_is_as_unsure_as_the_strangest_of_its_own() -> None:
    own = torch.linspace(0.5, 1, 101)[:, None].expand(-1, 2)  # one in twenty is below 0.525
    assert unfamiliar(torch.tensor([[0.51, 0.49], [0.53, 0.47], [0.9, 0.1]]), own) == pytest.approx(1 / 3)
    assert unfamiliar(own, own) == pytest.approx(5 / 101)
