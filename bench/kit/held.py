"""A process of a bench that answers each line with a line, so that it can take turns."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

ROOT = Path(__file__).resolve().parents[2]


class Held:
    """One process, which does nothing between two lines."""

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path = ROOT,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.popen = subprocess.Popen(  # noqa: S603 - the project's own modules
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=cwd,
            env=env,
        )
        self.given, self.out = cast(IO[str], self.popen.stdin), cast(IO[str], self.popen.stdout)

    def said(self) -> str:
        """The next line that it says.

        Raises:
            RuntimeError: where it ended instead.
        """
        line = self.out.readline()
        if not line:
            raise RuntimeError(f"A bench's process ended with {self.popen.wait()}; see above.")
        return line.strip()

    def ask(self, line: str) -> str:
        """What it says to this line."""
        self.given.write(f"{line}\n")
        self.given.flush()
        return self.said()

    def end(self) -> None:
        """Have it go, and wait for that."""
        self.popen.communicate()


def answer(turn: Callable[[str], object]) -> None:
    """In such a process: say what comes of each line of standard input, as JSON."""
    for line in sys.stdin:
        print(json.dumps(turn(line.strip())), flush=True)
