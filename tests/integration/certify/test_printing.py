"""An image prints its certificate: `docker run --rm awm/<env_id> certificate` runs just this command on its own folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

from awm_factory.certificate import Certificate
from bee_yard import certified


def asked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "awm_runtime.main", "certificate"]
    return subprocess.run(command, env={**os.environ, "AWM_ENV_DIR": str(folder)}, capture_output=True, text=True, check=False)


def test_an_image_prints_the_whole_certificate_that_it_was_built_with(tmp_path: Path) -> None:
    proof = certified().certificate
    assert proof is not None
    (tmp_path / "certificate.json").write_text(json.dumps(proof.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")
    printed = asked(tmp_path)
    assert printed.returncode == 0 and printed.stderr == ""
    assert Certificate.model_validate_json(printed.stdout) == proof


def test_an_image_without_a_certificate_says_so(tmp_path: Path) -> None:
    printed = asked(tmp_path)
    assert (printed.returncode, printed.stdout) == (1, "") and "without a certificate" in printed.stderr
