"""The tutorial is true: its files are written, its commands run, its output compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.kit.builders import ROOT

TUTORIAL = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
FILES = dict(
    re.findall(r"^Save as `([\w./]+)`:\n\n```\w+\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
)
SESSIONS = [text for kind, text in BLOCKS if kind == "console"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where somebody followed the tutorial."""
    place = tmp_path_factory.mktemp("tutorial")
    for name, text in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, encoding="utf-8")
    (place / "manage.py").symlink_to(ROOT / "manage.py")
    return place


def test_every_block_is_a_file_or_a_session() -> None:
    assert len(BLOCKS) == len(FILES) + len(SESSIONS)
    assert {"toml", "json", "python", "console"} == {kind for kind, _ in BLOCKS}


@pytest.mark.parametrize("session", SESSIONS, ids=[text.split("\n")[0] for text in SESSIONS])
def test_a_session_says_what_the_tutorial_shows(session: str, folder: Path) -> None:
    command, _, shown = session.partition("\n")
    words = command.removeprefix("$ .venv/bin/python ").split()
    found = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr.decode()
    pattern = ".*?".join(re.escape(part) for part in shown.split("…"))
    assert re.fullmatch(pattern, found.stdout.decode()), found.stdout.decode()
