"""The process that workers are forked from: confined first, then the environment imported once.

It is a fresh Python, not a fork of the supervisor, so that neither tokens nor verifiers nor episode ids were ever in its memory;
code and seed reach it through its socket, for by then it can open no file.
"""

import sys
import traceback

from awm_runtime import lean


def main() -> None:
    with lean.imports():
        from awm_runtime.forking import live

        live()


if __name__ == "__main__":
    try:
        main()
    except Exception:  # noqa: BLE001 - the last boundary: what is wrong here must be on the container's log before the process ends
        traceback.print_exc()
        sys.exit(1)
