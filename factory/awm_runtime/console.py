"""What the runtime says to people: complaints go to stderr, results to stdout."""

import sys


def complain(message: object) -> None:
    sys.stderr.write(f"awm-runtime: {message}\n")


def tell(result: str) -> None:
    sys.stdout.write(f"{result}\n")
    sys.stdout.flush()
