"""Cases of a client program, each run and told apart in one line."""

_CASES = []


def case(function):
    """Add a case, to be run in this order."""
    _CASES.append(function)
    return function


def run_cases():
    """Print ``ok NAME`` for each case, or what it raised."""
    for function in _CASES:
        try:
            function()
        except Exception as error:  # noqa: BLE001  the other cases are run all the same
            print("FAILED", function.__name__, type(error).__name__, error, flush=True)
        else:
            print("ok", function.__name__, flush=True)
