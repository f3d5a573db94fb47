"""Runs every scene of the refund desk: ``python examples/refund_desk/main.py``."""

import sys
from pathlib import Path


def main() -> None:
    """Print what each scene is about, and what came of it."""
    sys.path.append(str(Path(__file__).resolve().parents[2]))  # a checkout that is not installed
    from examples.refund_desk.scenes import SCENES

    for number, scene in enumerate(SCENES, 1):
        print(f"{number}. {scene.__doc__}")
        for line in scene():
            print(f"     {line}")


if __name__ == "__main__":
    main()
