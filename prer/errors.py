"""The two ways in which a command can fail, and their exit codes."""


class InputError(ValueError):
    """What the user gave is wrong; the message is one sentence that says what to do. Exit code 2."""


class RunError(RuntimeError):
    """A run that started well could not go on; the message says what happened and where. Exit code 1."""
