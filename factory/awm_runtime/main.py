"""`awm-runtime`: the entry point of an environment's image.

    serve         ports 8000 (control plane, MCP) and 8001 (MCP only); what a container does by default
    stdio         MCP over stdin and stdout
    verify        judge a database file
    export        the bundle as a tar stream
    certificate   print certificate.json

Any other command is executed as it stands, so that `docker run -it … bash` works.
"""

import gc
import os
import shutil
import sys

from awm_runtime import lean
from awm_runtime.console import complain, tell
from awm_runtime.settings import Settings, SettingsError

_COMMANDS = ("serve", "stdio", "verify", "export", "certificate")


def main() -> None:
    arguments = sys.argv[1:] or ["serve"]
    if arguments[0] in ("-h", "--help"):
        tell(str(__doc__).strip())
        return
    if arguments[0] not in _COMMANDS:
        _execute(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of strings must not differ from run to run; Python takes this setting at its start only.
        os.execve(sys.executable, [sys.executable, "-m", "awm_runtime.main", *arguments], {**os.environ, "PYTHONHASHSEED": "0"})
    try:
        sys.exit(_run(arguments[0], arguments[1:], Settings.read()))
    except SettingsError as error:
        sys.exit(f"awm-runtime: {error}")


def _run(command: str, arguments: list[str], settings: Settings) -> int:
    from awm_runtime.bundle_files import BundleBroken

    try:
        if command in ("serve", "stdio"):
            from awm_runtime.fresh import Fresh

            # First of all: it imports the environment while this process imports what serves it.
            zygote = Fresh.start("awm_runtime.zygote")
            with lean.imports():
                from awm_runtime.serve import serve
                from awm_runtime.stdio import stdio

            gc.freeze()  # what was imported is never garbage; without this it is searched through now and then, while calls wait
            return (serve if command == "serve" else stdio)(settings, zygote)
        from awm_runtime import commands

        return getattr(commands, command)(settings, arguments)  # type: ignore[no-any-return]
    except BundleBroken as error:
        complain(error)
        return 1


def _execute(command: list[str]) -> None:
    program = shutil.which(command[0])
    if program is None:
        sys.exit(f"awm-runtime: {command[0]!r} is neither a command of mine ({', '.join(_COMMANDS)}) nor a program here")
    os.execv(program, command)


if __name__ == "__main__":
    main()
