"""What more than one module of the verifier's tests begins with."""

from pathlib import Path

import pytest

from tests.core.proof.parts import made_known


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A note beside which the tail of the old log lies."""
    return made_known(tmp_path / "known")
