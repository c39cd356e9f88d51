"""Stacked trainings against `fit` one by one, folded convolutions against those of torch, dropout by member."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from forsooth.models.chain import WAYS, Way, chain, ways_for
from forsooth.models.recipes import Recipe
from forsooth.models.samples import pooled
from forsooth.models.small import cnn, llr, mlp
from forsooth.models.together import Member, Options, can, fit_together
from forsooth.models.train import fit
from forsooth.records import Dataset, UsageError

QUICK = Recipe(learning_rate=0.01, batch=32, epochs=4, restarts=0)
CPU = torch.device("cpu")
NETS = {
    "llr": lambda: llr(size=8),
    "mlp": lambda: mlp(size=8),
    "cnn paper": lambda: cnn(size=8),
    "cnn released": lambda: cnn(size=8, variant="released"),
}


def toy(*, noise, seed=0):
    """200 images of 8×8 whose first row is shifted up for class 1."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (200,), generator=g)
    x = noise * torch.randn(200, 1, 8, 8, generator=g, dtype=torch.float64)
    x[:, 0, 0] += y[:, None].double() - 0.5
    splits = dict(zip(("val", "test", "train"), torch.arange(200).split([50, 50, 100]), strict=True))
    return Dataset("toy", x, y, None, splits)


def weights(trained):
    return torch.cat([p.detach().flatten() for p in trained.module.parameters()])


def together(build, datasets, members, recipe, **options):
    pool = pooled(iter(datasets), len(datasets), CPU)
    return fit_together(build, pool, members, recipe, options=Options(**options), tell=lambda _: None)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.convolution} {way.stack}")
@pytest.mark.parametrize("name", NETS)
def test_many_at_once_end_where_each_ends_alone(name, way):
    """Two datasets, three seeds, batches that do not come out even; in float64, where the order of sums is little."""
    datasets = [toy(noise=0.3), toy(noise=0.5, seed=1)]
    members = [Member(0, 1), Member(1, 2), Member(1, 5)]
    recipe = replace(QUICK, double_softmax=True, weight_decay=0.01)
    for member, found in zip(members, together(NETS[name], datasets, members, recipe, way=way), strict=True):
        alone = fit(NETS[name], datasets[member.dataset], recipe, seed=member.seed)
        torch.testing.assert_close(weights(found), weights(alone), rtol=1e-6, atol=1e-9)
        assert found.val_loss == pytest.approx(alone.val_loss, rel=1e-6)
        assert (found.test_accuracy, found.epochs, found.passed) == (alone.test_accuracy, alone.epochs, alone.passed)
        assert not found.module.training


def test_those_that_collapse_begin_again_together_and_the_others_are_left_alone():
    data = toy(noise=0.8)
    recipe = replace(QUICK, epochs=3, gate=0.85, restarts=2, patience=1)
    members = [Member(0, seed) for seed in range(4)]
    found = together(NETS["mlp"], [data], members, recipe)
    alone = [fit(NETS["mlp"], data, recipe, seed=seed) for seed in range(4)]
    assert [one.attempts for one in found] == [one.attempts for one in alone]
    assert len({one.restarts for one in alone}) > 1  # else nothing was shown


@pytest.mark.parametrize("size, variant", [(8, "released"), (8, "paper"), (64, "released")])
@pytest.mark.parametrize("convolution", ["folded", "columns"])
def test_a_folded_convolution_gives_what_torch_gives(size, variant, convolution):
    torch.manual_seed(0)
    net = cnn(size=size, variant=variant).double()
    x = torch.randn(3, 1, size, size, dtype=torch.float64)
    torch.testing.assert_close(chain(net, convolution)(x, dict(net.named_parameters()), []), net(x))


def test_only_ways_that_differ_are_tried():
    assert ways_for(mlp(size=8)) == (Way(),)
    assert ways_for(cnn(size=64, variant="released")) == WAYS
    assert {way.convolution for way in ways_for(cnn(size=64))} == {"plain"}  # its pools have stride 1


def dropping() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))


@pytest.mark.parametrize("evaluate_in_train_mode", [False, True])
def test_what_dropout_keeps_goes_by_the_seed_of_a_member_and_not_by_its_company(evaluate_in_train_mode):
    data = toy(noise=0.3)
    recipe = replace(QUICK, evaluate_in_train_mode=evaluate_in_train_mode)
    pair = together(dropping, [data], [Member(0, 1), Member(0, 2)], recipe)
    alone = together(dropping, [data], [Member(0, 2)], recipe)
    torch.testing.assert_close(weights(pair[1]), weights(alone[0]), rtol=1e-9, atol=1e-12)
    without = fit(lambda: dropping()[:3].append(nn.Linear(8, 2)), data, recipe, seed=2)
    assert not torch.allclose(weights(pair[1]), weights(without))
    assert pair[0].module.training == evaluate_in_train_mode


def test_dropout_keeps_its_share_and_scales_what_it_keeps():
    net = dropping().double()
    x = torch.randn(5, 1, 8, 8, dtype=torch.float64)
    kept = torch.rand(5, 8) < 0.7
    weights = dict(net.named_parameters())
    hidden = net[1](x.flatten(1)).relu() * kept / 0.7
    torch.testing.assert_close(chain(net, "plain")(x, weights, [kept]), net[4](hidden))


def test_networks_that_are_no_plain_chain_are_trained_alone():
    assert can(NETS["cnn paper"], QUICK)
    assert not can(lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)), QUICK)
    assert not can(lambda: nn.Bilinear(2, 2, 2), QUICK)
    assert not can(NETS["mlp"], replace(QUICK, augment="flip"))


def test_datasets_of_other_shapes_are_refused():
    one = toy(noise=0.3)
    with pytest.raises(UsageError, match=r"`datasets` must be of one shape, got \(200, 1, 8, 4\) and \(200, 1, 8, 8\)"):
        pooled([one, replace(one, x=one.x[..., :4])], 2, CPU)
