"""What is said of a method: sentences on what it left changed, and where it draws from (verdict: words.jinja)."""

from collections.abc import Mapping

# What may be found changed after a call (`work.state`): the sentence, and how to fix it.
CHANGES = {
    "x": ("x was changed", "work on a copy, x = x.clone()"),
    "requires_grad of x": ("x was left with another requires_grad", "derive by a copy, x.clone().requires_grad_()"),
    "target": ("target was changed", "work on target.clone()"),
    "background": ("background was changed", "work on background.clone()"),
    "fit": ("fit was changed", "work on fit.clone()"),
    "the model's weights": ("weights or buffers of the model were changed", "work on copy.deepcopy(model)"),
    "requires_grad of the model's weights": (
        "weights of the model were left with another requires_grad",
        "put the flags back in a finally",
    ),
    "the model's mode": (
        "parts of the model were left in another mode (train or eval)",
        "leave the model in eval, as it comes",
    ),
    "hooks of the model": ("hooks were left on the model", "call handle.remove() in a finally"),
    "the model's layers": ("layers of the model were replaced", "work on copy.deepcopy(model)"),
    "torch": ("torch was left in another grad mode", "use `with torch.no_grad():`, which puts it back"),
}
DRAWS = {
    "torch": "it draws from torch's global generator; that is seeded before each call here, and may not be elsewhere",
    "numpy": "it draws from numpy's global generator, which nobody seeds here",
    "random": "it draws from the global generator of `random`, which nobody seeds here",
}
SEEDED = "draw with torch, or declare needs=('generators',) in a forsooth.Method: one for each input to draw from"
SUMS: Mapping[str | None, str] = {"conserve": "f(x)", "complete to background": "f(x) - mean f(background)"}
