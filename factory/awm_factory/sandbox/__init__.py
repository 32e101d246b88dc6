"""Where generated code runs: a container of the base image, or a child process with limits where there is no engine."""

from awm_factory.sandbox.container import ContainerSandbox
from awm_factory.sandbox.pool import Sandbox
from awm_factory.sandbox.process import ProcessSandbox

__all__ = ["ContainerSandbox", "ProcessSandbox", "Sandbox"]
