"""Short trainings and one store for the tests of the bias suite."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from forsooth.engine import one_thread
from forsooth.suites.bias import audit, data


@pytest.fixture(autouse=True)
def few_images(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tenth of the generated images, on one thread; other tests get all of them."""
    forget()
    monkeypatch.setattr(data, "LEAVES_IMAGES", 300)
    with one_thread():
        yield
    forget()


def forget() -> None:
    """Data that were kept for the next task."""
    data.dataset.forget()  # type: ignore[attr-defined]
    audit.audited_data.forget()  # type: ignore[attr-defined]


@pytest.fixture
def one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games can be played with any network, so training is cut short, and no gate is kept."""
    known = data.entry_for

    def short(name: str) -> data.DatasetEntry:
        entry = known(name)
        return dataclasses.replace(entry, recipe=dataclasses.replace(entry.recipe, epochs=1), gate=0.0)

    monkeypatch.setattr(data, "entry_for", short)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where reproductions are made: they share a store, so that each network is trained once."""
    return tmp_path_factory.mktemp("bias")
