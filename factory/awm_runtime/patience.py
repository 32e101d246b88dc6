"""How long to wait on a machine that has more to do than it has processors for.

Limits in seconds of the wall tell a call that hangs from one that works. Where others want the processors, too, the same work
takes as many times longer as there are processes for each of them, and a sound environment must not be refused for that.
"""

import os
from typing import Final

MOST: Final = 30.0
"""A limit is stretched no further, so that a hang ends in minutes whatever the machine does."""


def patient(seconds: float) -> float:
    """The limit for what `seconds` are enough for on a machine with nothing else to do.

    Goes by the load of the last minute, for each processor of the machine. To be called outside of a confinement.
    """
    return seconds * min(MOST, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))
