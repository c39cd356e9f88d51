"""What is said of a method: sentences on what it left changed, where it draws from, and the verdict."""

from collections.abc import Mapping, Sequence

from pandas import DataFrame

from forsooth.wording import joined

# What may be found changed after a call: the sentence, and how to fix it.
CHANGES = {
    "x": ("x was changed", "work on a copy, x = x.clone()"),
    "requires_grad of x": ("x was left with another requires_grad", "derive by a copy, x.clone().requires_grad_()"),
    "target": ("target was changed", "work on target.clone()"),
    "background": ("background was changed", "work on background.clone()"),
    "fit": ("fit was changed", "work on fit.clone()"),
    "weights": ("weights or buffers of the model were changed", "work on copy.deepcopy(model)"),
    "requires_grad": ("weights of the model were left with another requires_grad", "put the flags back in a finally"),
    "mode": ("parts of the model were left in another mode (train or eval)", "leave the model in eval, as it comes"),
    "hooks": ("hooks were left on the model", "call handle.remove() in a finally"),
    "layers": ("layers of the model were replaced", "work on copy.deepcopy(model)"),
    "torch": ("torch was left in another grad mode", "use `with torch.no_grad():`, which puts it back"),
}
DRAWS = {
    "torch": "it draws from torch's global generator; that is seeded before each call here, and may not be elsewhere",
    "numpy": "it draws from numpy's global generator, which nobody seeds here",
    "random": "it draws from the global generator of `random`, which nobody seeds here",
}
SEEDED = "draw with torch, or declare needs=('generators',) in a forsooth.Method: one for each input to draw from"
SUMS: Mapping[str | None, str] = {"conserve": "f(x)", "complete to background": "f(x) - mean f(background)"}


def summary(name: str, wrong: DataFrame, *, random: bool, works_on: Sequence[str]) -> str:
    """The verdict in sentences; what is wrong is said once, with the inputs where it was seen.

    wrong     lines of the table, merged
    works_on  kinds of input
    """
    if not wrong.empty:
        faults = [f"- {line.check} ({line.input}): {line.message}." for line in wrong.itertuples()]
        return "\n".join([f"{name} breaks the contract. To fix:", *faults])
    kind = "deterministic"
    if random:
        kind = "random"
    verdict = f"{name} keeps the contract on {joined(works_on)}. It is {kind}. Notes are no faults."
    if ":" in name:
        verdict += f" Next: forsooth run xaitris --preset demo --methods saliency,sobel,random,oracle,{name}"
    return verdict
