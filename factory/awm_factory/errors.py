"""Every fatal error of the host side, with its exit code and the next step in its message.

    AwmError
    ├── UsageError            the command line or a value on it makes no sense
    ├── ConfigError           an environment variable or a config file is wrong
    ├── FormatError           a file of an AWM run directory can't be read
    ├── BundleError           an environment's directory is not a bundle
    ├── CatalogError          the workspace or its registry/ folder is unusable
    ├── EngineError           no Docker engine answers, or it refuses what we ask
    ├── SandboxError          the place where generated code runs broke (not the code itself)
    ├── BuildError            an image could not be built
    ├── SmokeError            a built image does not behave as its manifest says
    ├── PushError             a registry refused an image, or lost it on the way
    └── BatchFailed           some environments of a batch failed; the others are done

A broken *artifact* is never one of these: it is a `Problem` (see `problems.py`).
"""


class AwmError(Exception):
    """Root of all errors that end a command. `exit_code` is the process's."""

    exit_code = 1


class UsageError(AwmError):
    exit_code = 2


class ConfigError(AwmError):
    exit_code = 2


class FormatError(AwmError):
    exit_code = 3


class BundleError(AwmError):
    exit_code = 3


class CatalogError(AwmError):
    exit_code = 3


class EngineError(AwmError):
    exit_code = 4


class SandboxError(AwmError):
    exit_code = 4


class BuildError(AwmError):
    exit_code = 5


class SmokeError(AwmError):
    exit_code = 5


class PushError(AwmError):
    exit_code = 6


class BatchFailed(AwmError):
    exit_code = 1
