"""What a reader of results must know of a dataset, in sentences."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from forsooth.datasets import texts
from forsooth.datasets.articles import SPLITS, Articles

MOST_NAMED = 5  # classes
Facts = Mapping[str, Any]


def on_images(facts: Facts) -> list[str]:
    """On labelled images, from the facts of their dataset."""
    classes = len(facts["classes"])
    if facts.get("generated"):
        return [f"Images are generated: {facts['n']:,} dead leaves of {classes} kinds."]
    used = sum(facts["counts"].values())
    sentences = [f"{used:,} of {facts['available']:,} images used, {in_classes(facts['classes'])}."]
    if facts.get("masks"):
        sentences.append(f"Masks of other images, by the names of files and folder, left out: {facts['masks']:,}.")
    if facts["unreadable"]:
        sentences.append(unreadable(facts["unreadable"]))
    if facts["without_class"]:
        sentences.append(f"Images in no class folder, left out: {facts['without_class']}.")
    if facts["enlarged"]:
        sentences.append(f"Images smaller than {facts['side']} px, enlarged: {facts['enlarged']}.")
    return sentences


def in_classes(names: Sequence[str]) -> str:
    """How many classes, and which, while they are few: a reader sees whether a folder was taken for one by mistake."""
    if len(names) == 1:
        return "all in one class"
    if len(names) > MOST_NAMED:
        return f"in {len(names)} classes"
    return f"in {len(names)} classes ({', '.join(names)})"


def unreadable(lines: Sequence[str]) -> str:
    """How many files could not be used, and why the first of them; Pillow names an address, which is no reason."""
    reasons = re.sub(r" <\S+ object at 0x\w+>", "", "; ".join(lines[:5]))
    return f"Files that could not be used: {len(lines)} ({reasons})."


def on_backgrounds(facts: Facts) -> list[str]:
    """On the backgrounds of tetrominoes."""
    if facts["background"] != "IMAGENET":
        return []
    sentences = [f"IMAGENET backgrounds are {facts['background_from']}."]
    broken = facts["unreadable"]
    if broken:
        sentences.append(f"{len(broken)} image files could not be used: {'; '.join(broken[:5])}.")
    return sentences


def on_documents(documents: Articles, vectors: str | None, *, seed: int) -> list[str]:
    """On documents whose articles were rewritten.

    vectors  the file of word vectors that the user gave; None: they are learned
    """
    facts = documents.dataset.facts
    unknown = facts["unknown_tokens"] / max(1, facts["tokens"])
    sentences = [
        f"{facts['setting']['kind']}: correlating articles, non-correlating articles and other words are "
        f"{_percent(facts['frequency'])} % of the words ({_percent(facts['paper_frequency'])} % in the paper).",
        f"Documents: {facts['documents']} of {facts['source']}, of which {_losses(facts)}; {split_sizes(documents)} "
        f"train, validate and test. {unknown:.1%} of the words are unknown to the vocabulary of {facts['words']}.",
    ]
    if vectors:
        words = documents.vocabulary
        known = texts.word_vectors(vectors, words, seed=seed)[1]
        sentences.append(
            f"Word vectors: {known} of the {len(words)} words have one in the given file, the others a random one."
        )
    return sentences


def split_sizes(documents: Articles) -> str:
    """How many documents train, validate and test."""
    return "/".join(str(len(documents.dataset.splits[name])) for name in SPLITS)


def _percent(shares: Sequence[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _losses(facts: Facts) -> str:
    """How many documents were left out or cut, and why."""
    reasons = {
        "empty": "were empty",
        "without_tokens": "had no token",
        "without_articles": "had no article",
        "articles_in_one_half": "had articles in one half only",
        "undecided": "have nothing that tells the label",
        "truncated": f"were cut at {facts['length']} tokens",
    }
    counts = ", ".join(f"{facts[name]} {reason}" for name, reason in reasons.items() if facts[name])
    sentence = counts or "none was left out or cut"
    if facts["undecodable_bytes"]:
        sentence += f"; {facts['undecodable_bytes']} bytes could not be decoded"
    return sentence
