"""Builds an entry of a list, and writes lists."""

from pathlib import Path

from mutations.patching import Mutation

GUARD = """    if len(r) != R_BYTES:
        raise ValueError("r must be 32 random bytes")"""


def entry(**change: object) -> dict[str, object]:
    """A good entry, that ``change`` may make bad; None takes a key away."""
    good: dict[str, object] = {
        "id": "short-r",
        "file": "nanovm_core/core/vault.py",
        "guard": "A short r.",
        "find": GUARD,
        "replace": "    pass",
        "tests": ["tests/core/values/test_envelope.py"],
    }
    return {key: value for key, value in {**good, **change}.items() if value is not None}


def mutation(**change: str) -> Mutation:
    """A mutation that removes the guard of a commitment's r."""
    fields = entry(**change)
    del fields["tests"]
    return Mutation(**fields, tests=("tests/core/values/test_envelope.py",))  # type: ignore[arg-type]


def written(folder: Path, *entries: dict[str, object], name: str = "some.toml") -> Path:
    """A folder with a list of these entries."""
    lines = []
    for each in entries:
        lines.append("[[mutation]]")
        lines += [f"{key} = {_toml(value)}" for key, value in each.items()]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml(each) for each in value)}]"
    return f"'''{value}'''" if isinstance(value, str) else str(value)
