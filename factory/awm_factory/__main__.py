"""The command, and `python -m awm_factory`. An installation without extras is the client alone, and says so."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    try:
        from awm_factory import cli
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("awm_"):
            raise
        sys.exit(f"error: this installation holds the client alone ({error.name} is missing); pip install 'awm-factory[factory]'")
    cli.main()


if __name__ == "__main__":
    main()
