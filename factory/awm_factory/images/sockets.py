"""What listens inside a container, and what is within its reach: asked inside, where nothing is published."""

from collections.abc import Sequence
from typing import Final

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.images.hardened import Box
from awm_factory.images.trial import TrialError

OUTSIDE: Final = ("1.1.1.1:443", "8.8.8.8:53", "192.0.2.1:9")
"""Addresses that are not in the network: two that answer wherever there is a way out, one of RFC 5737."""
REACHED: Final = """
import concurrent.futures, errno, socket, sys
def reached(target):
    address, _, port = target.rpartition(":")
    try:
        socket.create_connection((address, int(port)), timeout=1).close()
    except OSError as e:
        return e.errno == errno.ECONNREFUSED
    return True
with concurrent.futures.ThreadPoolExecutor() as pool:
    for target, answer in zip(sys.argv[1:], pool.map(reached, sys.argv[1:])):
        if answer:
            print(target)
"""
"""Prints those of its arguments that answer, be it by a refusal. Engines differ in how an internal network ends an attempt:
newer ones have no route out of it, older ones drop what is sent."""


def sockets(box: Box) -> str:
    """The kernel's table of the container's TCP sockets."""
    return box.run(["cat", "/proc/net/tcp", "/proc/net/tcp6"])[1]


def wait_until_listening(box: Box, port: int, variable: str, limit: float) -> None:
    """For a container that publishes nothing, before another one asks it. `limit`: seconds; `variable`: what names the port.

    Raises TrialError.
    """

    def look() -> str:
        if not box.running():
            raise TrialError("the container ended before it answered")
        return listeners(sockets(box), port)

    retry = retry_if_result(lambda said: said.startswith("nothing"))
    try:
        Retrying(stop=stop_after_delay(limit), wait=wait_fixed(0.05), retry=retry)(look)
    except RetryError:
        raise TrialError(f"with {variable}={port}, nothing listens on port {port} inside after {limit:.3g} s") from None


def listeners(table: str, port: int) -> str:
    """What /proc/net/tcp and tcp6 say of who listens on a port."""
    addresses = []
    for line in table.splitlines():
        columns = line.split()
        if len(columns) > 3 and columns[3] == "0A":
            address, _, number = columns[1].partition(":")
            if int(number, 16) == port:
                addresses.append(address)
    if not addresses:
        return f"nothing listens on port {port} inside"
    if all(address in {"0100007F", "00000000000000000000000001000000"} for address in addresses):
        return f"the server listens on 127.0.0.1 only, so port {port} is dead from outside; let it listen on 0.0.0.0"
    return f"something listens on port {port} inside, but does not answer"


def reached(box: Box, targets: Sequence[str]) -> list[str]:
    """Those of the addresses `host:port` that answer from inside a container."""
    return box.run(["python", "-c", REACHED, *targets])[1].split()
