"""Walks and single players by what a change reaches, against whole forwards, one by one."""

import pytest
import torch
from torch import nn

from forsooth.games import crops, game
from forsooth.games.alone import alone_values
from forsooth.games.chains import MANY, folded, known, normalises, prepared
from forsooth.games.crops import local
from forsooth.games.draws import shuffled
from forsooth.games.shapley import permutation
from forsooth.games.sums import opening
from forsooth.games.values import part_of
from forsooth.games.walks import orders, stepping
from forsooth.models.lenet import lenet
from forsooth.models.resnet import cifar_resnet
from forsooth.models.small import cnn
from forsooth.seeds import generator


@pytest.fixture
def however_small(monkeypatch):
    """Windows are computed also where whole forwards of so small a network are as quick, few steps at a time."""
    monkeypatch.setattr(crops, "SAVES", 1)
    monkeypatch.setattr(crops, "ENTRIES", {"cpu": 2**12})


def perceptron(width=600):
    layers = [nn.Flatten(), nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, 3)]
    return seeded(nn.Sequential(*layers))


def stride_one(side=20, *, padded=True, pool=2):
    """A chain whose crops are smaller than half of its images; unlike margins and kernels along the two axes."""
    margin = (1, 0, 2, 1) if padded else (0, 0, 0, 0)
    layers = [nn.ZeroPad2d(margin), nn.Conv2d(2, 3, (2, 3)), nn.ReLU(), nn.MaxPool2d(pool, stride=1)]
    layers += [nn.Conv2d(3, 2, 2, padding=1), nn.ReLU(), nn.Flatten()]
    inner = nn.Sequential(*layers)
    width = inner(torch.zeros(1, 2, side, side)).shape[1]
    head = (nn.Linear(width, 5), nn.ReLU(), nn.Linear(5, 3))
    return seeded(nn.Sequential(nn.Sequential(*layers, *head), nn.Softmax(1)))


def with_strides(side=40):
    """A chain of strides, unlike along the two axes, with what no window sees; behind it a convolution without ReLU."""
    layers = [nn.ZeroPad2d((1, 0, 2, 1)), nn.Conv2d(2, 6, (3, 4), stride=(1, 2)), nn.ReLU()]
    layers += [nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 3), stride=(2, 1))]
    layers += [nn.Conv2d(8, 2, 2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 3)]
    return seeded(nn.Sequential(*layers))


def seeded(net):
    drawn = generator(0, "weights")
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=drawn) * 0.5
    return net.eval().requires_grad_(False).double()


def asked(net, x, target, **settings):
    return game(net, x, target, rewrite_model=True, **settings)


def played_on(net, shape, *, own_roles=False, n=2, **settings):
    drawn = generator(1, "x")
    x = torch.randn(n, *shape, generator=drawn, dtype=torch.float64)
    baseline = torch.randn(shape, generator=drawn, dtype=torch.float64)
    played = asked(net, x, torch.arange(n) % 3, baseline=baseline, **settings)
    return shuffled(played, [generator(2, i) for i in range(n)] if own_roles else None)


def literal_walk(played, ranks):
    """One forward after the other: (n, walks, players - 1)."""
    found = torch.empty(len(played.x), len(ranks), played.count - 1, dtype=played.x.dtype)
    for i, x in enumerate(played.x):
        one = part_of(played, i, i + 1)
        player = played.labels.expand(x.shape)
        role = player if one.roles is None else one.roles[0][player]
        for walk, rank in enumerate(ranks):
            for step in range(1, played.count):
                hidden = torch.where(rank[role] < step, x, one.baseline[0])
                found[i, walk, step - 1] = played.model(hidden[None])[0, played.target[i]]
    return found


@pytest.mark.parametrize("own_roles", [False, True])
def test_running_sums_walk_as_whole_forwards_do(own_roles):
    players = torch.arange(600).reshape(1, 20, 30) // 4
    played = played_on(perceptron(), (1, 20, 30), own_roles=own_roles, players=players)
    assert opening(played) is not None
    ranks = next(orders(played.count, 3, generator(3), torch.device("cpu")))
    torch.testing.assert_close(stepping(played, None)(ranks), literal_walk(played, ranks), rtol=1e-9, atol=1e-9)


def test_running_sums_of_single_features():
    played = played_on(perceptron(), (600,))
    ranks = next(orders(600, 1, generator(3), torch.device("cpu")))
    torch.testing.assert_close(stepping(played, None)(ranks), literal_walk(played, ranks), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("own_roles", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_crops_walk_as_whole_forwards_do(own_roles, padded):
    played = played_on(stride_one(padded=padded), (2, 20, 20), own_roles=own_roles)
    parts = local(played)
    assert parts is not None and parts.head is not None
    ranks = next(orders(400, 1, generator(3), torch.device("cpu")))
    torch.testing.assert_close(stepping(played, None)(ranks), literal_walk(played, ranks), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize("own_roles", [False, True])
def test_windows_of_networks_with_strides_walk_as_whole_forwards_do(own_roles):
    played = played_on(with_strides(), (2, 22, 27), own_roles=own_roles, n=1)
    parts = local(played)
    assert parts is not None and parts.head is None and len(parts.stages) == 2
    ranks = next(orders(22 * 27, 2, generator(3), torch.device("cpu")))
    torch.testing.assert_close(stepping(played, None)(ranks), literal_walk(played, ranks), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("however_small")
@pytest.mark.parametrize(
    ("net", "shape"),
    [(perceptron(), (1, 20, 30)), (stride_one(), (2, 20, 20)), (with_strides(), (2, 22, 27))],
)
def test_players_replaced_alone(net, shape):
    played = played_on(net, shape)
    stands = torch.randn(played.x.shape, generator=generator(4), dtype=torch.float64)
    expected = torch.empty(2, played.count, dtype=torch.float64)
    for i in range(2):
        for player in range(played.count):
            changed = torch.where(played.labels == player, stands[i], played.x[i])
            expected[i, player] = net(changed[None])[0, played.target[i]]
    torch.testing.assert_close(alone_values(played, stands), expected, rtol=1e-9, atol=1e-9)


def test_networks_are_walked_by_windows_where_that_pays():
    x = torch.zeros(1, 1, 64, 64)
    target = torch.zeros(1, dtype=torch.int64)
    printed = cnn(size=64).eval()
    assert local(asked(printed, x, target)) is not None
    assert local(asked(prepared(asked(printed, x, target), MANY).model, x, target)) is not None
    released = local(asked(cnn(size=64, variant="released").eval(), x, target))
    assert released is not None and released.head is None
    assert local(asked(cnn(size=8).eval(), x[..., :8, :8], target)) is None
    assert local(asked(printed, x, target, players=torch.arange(64 * 64).reshape(64, 64) // 2)) is None
    assert local(asked(lambda x: printed(x), x, target)) is None


def test_random_layers_and_hooks_keep_a_network_as_it_is():
    chatty = nn.Sequential(nn.Flatten(), nn.Linear(600, 2))
    assert known(chatty)
    chatty.register_forward_hook(lambda *_: None)
    assert not known(chatty)
    dropping = nn.Sequential(nn.Flatten(), nn.Linear(600, 2), nn.Dropout(0.5))
    assert not known(dropping.train())
    assert known(dropping.eval())


@pytest.mark.parametrize(
    ("net", "shape"),
    [(cnn(size=8), (1, 8, 8)), (lenet(), (3, 32, 32)), (cifar_resnet(depth=20), (3, 32, 32))],
)
def test_prepared_networks_say_the_same(net, shape):
    net = net.eval().requires_grad_(False)
    x = torch.randn(3, *shape, generator=generator(5))
    ready = prepared(asked(net, x, torch.zeros(3, dtype=torch.int64)), MANY)
    assert ready.model is not net
    torch.testing.assert_close(ready.model(x), net(x), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("however_small")
def test_shapley_values_sum_to_the_gain_whatever_the_way():
    for net, shape in ((perceptron(), (1, 20, 30)), (stride_one(), (2, 20, 20)), (with_strides(), (2, 22, 27))):
        played = played_on(net, shape)
        values = permutation(played, permutations=2, generator=generator(0)).values
        ends = net(played.x) - net(played.baseline)
        torch.testing.assert_close(values.sum(1), ends.gather(1, played.target[:, None])[:, 0])


def test_batch_normalisation_becomes_a_part_of_the_convolution_before_it():
    net = cifar_resnet(depth=20).eval().requires_grad_(False)
    called = [node.target for node in folded(net).graph.nodes if node.op == "call_module"]
    assert not any(normalises(net.get_submodule(name)) for name in called)
    twice = nn.Conv2d(3, 3, 1)
    shared = nn.Sequential(twice, nn.BatchNorm2d(3), twice, nn.BatchNorm2d(3)).eval()
    assert sum(node.op == "call_module" for node in folded(shared).graph.nodes) == 4


def test_nothing_is_rewritten_unasked():
    x = torch.zeros(1, 1, 64, 64)
    played = game(cnn(size=64).eval(), x, torch.zeros(1, dtype=torch.int64))
    assert prepared(played, MANY) is played
    assert local(played) is None
    assert opening(game(perceptron(), torch.zeros(1, 600).double(), torch.zeros(1, dtype=torch.int64))) is None
