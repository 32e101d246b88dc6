"""A process that imports an environment leaves out what nobody asks for, and nothing that anybody does."""

import gc
import subprocess
import sys

from awm_runtime import lean

_ENVIRONMENT = """
import sys
from awm_runtime import lean
with lean.imports():
    from awm_runtime import forking
left_out = {left_out!r}
print(sorted(name for name in left_out if name in sys.modules))
from pydantic import BaseModel, EmailStr
class Person(BaseModel):
    email: EmailStr
print(Person(email="ada@quill.example.org").email, "email_validator.syntax" in sys.modules)
"""
LEFT_OUT = ["email_validator.syntax", "fastapi_mcp", "httpx", "jsonschema", "mcp", "mcp.types", "uvicorn"]


def test_the_process_that_imports_an_environment_leaves_out_what_nobody_asks_for() -> None:
    command = [sys.executable, "-c", _ENVIRONMENT.format(left_out=LEFT_OUT)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == ["[]", "ada@quill.example.org True"]


def test_no_garbage_is_looked_for_while_importing_and_again_afterwards() -> None:
    with lean.imports():
        assert not gc.isenabled()
    assert gc.isenabled()
