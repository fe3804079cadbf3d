"""The command `findling`, which `python -m findling` is, too."""

from __future__ import annotations

import os
import sys

from findling.faces.cli.warm_client import ask_warm

__all__ = ["main", "stay_warm"]


def main() -> int:
    """Run the command line, here or in the warm process, and return its exit code."""
    code = ask_warm()
    if code is not None:
        os._exit(code)  # nothing was opened that has to be closed
    from findling.faces.cli.main import run

    return run()


def stay_warm() -> None:
    """Be the warm process of a home: the first argument; a second one says after how many idle seconds it leaves."""
    from findling.faces.cli.main import run
    from findling.service.warm import process

    home, *idle_s = sys.argv[1:]
    process.stay_warm(run, home, float(idle_s[0]) if idle_s else process.IDLE_S)


if __name__ == "__main__":
    sys.exit(main())
