"""What the user is told in one line. It stands by itself, so that a refusal costs no import of torch."""


class UsageError(Exception):
    """The user asked for something that cannot be: the message names the argument, the expectation and what came."""


class FailedTasks(Exception):
    """Some tasks of a run failed, all others are done: the message says how many, and why the first did."""
