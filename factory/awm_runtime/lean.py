"""What a process that imports an environment can do without: each tenth of a second of it is one of every container's start."""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_LATER: Final = ("email_validator",)
"""Imported by FastAPI for models of documentation alone; they are there in full as soon as anything of them is asked for."""


@contextmanager
def imports() -> Iterator[None]:
    """For the import of libraries and of an environment: nothing of what that makes is garbage, so none is looked for."""
    gc.disable()
    try:
        for name in _LATER:
            _import_later(name)
        yield
    finally:
        gc.enable()


def _import_later(name: str) -> None:
    spec = None if name in sys.modules else find_spec(name)
    if spec is not None:
        sys.modules[name] = module_from_spec(spec)
        sys.modules[name].__class__ = _Later


class _Later(ModuleType):
    """importlib's LazyLoader, but an `import` of what another has imported does not count as asking for it."""

    def __getattr__(self, name: str) -> Any:
        self.__class__ = ModuleType  # type: ignore[assignment]
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


class Waiting:
    """Does something to a module once it is imported, which may be never."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self.name, self.then = name, then

    @contextmanager
    def on_watch(self) -> Iterator[None]:
        if (module := sys.modules.get(self.name)) is not None:
            self.then(module)
            yield
            return
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            if self in sys.meta_path:
                sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Of the protocol of `sys.meta_path`."""
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
