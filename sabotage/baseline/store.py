"""The loop's state: a JSON file in a folder, without a hash."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STATE = "state.json"


class BaselineState:
    """A state file that nothing protects. It holds no personal values."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / STATE
        self.state: dict[str, Any] = {}

    def note(self, name: str, value: object) -> None:
        """Remember a value."""
        self.state[name] = value
        self._file.write_text(json.dumps(self.state), "utf-8")

    def read_again(self) -> None:
        """Load the file, unchecked, as after a restart."""
        self.state = json.loads(self._file.read_text("utf-8"))

    def edit(self, **changes: object) -> None:
        """Change the file behind the loop's back: there is no hash to change with it."""
        stored = json.loads(self._file.read_text("utf-8"))
        self._file.write_text(json.dumps({**stored, **changes}), "utf-8")

    def copy(self) -> bytes:
        """The file's bytes."""
        return self._file.read_bytes()

    def put_back(self, copy: bytes) -> None:
        """Put a copy in its place; nothing tells an old one from the newest."""
        self._file.write_bytes(copy)

    def delete(self) -> None:
        """Delete the file: all that an erasure is here."""
        self._file.unlink()


@contextmanager
def temporary_state(parent: Path) -> Iterator[BaselineState]:
    """A store for the length of the block; its folder is gone afterwards."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=parent, prefix="loop-") as folder:
        yield BaselineState(Path(folder))
