"""The documents name every command and setting, and no path that is not there."""

import ast
import re
import tomllib
from pathlib import Path

from config.environment import SETTINGS
from docs.api import GROUPS
from tests.house.repository import ROOT, files, name_of, named, source_of, tree_of, written

PACKAGES = ("config", "dashboard", "sabotage", "pipeline", "nanovm_core", "stripe_sandbox")


def undocumented(commands: set[str], settings: set[str], documents: str) -> list[str]:
    """Commands and settings that no document names."""
    missing = [
        f"manage.py {name}"
        for name in sorted(commands)
        if not re.search(rf"(manage\.py|make) {name}\b", documents)
    ]
    return missing + [name for name in sorted(settings) if not re.search(rf"\b{name}\b", documents)]


def environment_settings(source: str) -> set[str]:
    """The names that a module reads from an ``environ``."""
    found = set()
    for node in ast.walk(tree_of(source)):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(value=target, attr="get" | "getenv"),
                    args=[ast.Constant(value=str(name)), *_],
                )
                | ast.Subscript(value=target, slice=ast.Constant(value=str(name)))
            ):
                if ast.unparse(target) in ("os", "environ", "os.environ"):
                    found.add(name)
    return found


def missing_paths(document: Path) -> list[str]:
    """Paths that a document names in code or as a link, and that are not there."""
    text = source_of(document)
    tops = "|".join(
        sorted({path.relative_to(ROOT).parts[0] for path in files() if "/" in name_of(path)})
    )
    found = re.findall(rf"`((?:{tops})/[^\s`:{{}}]+)", text)
    gone = [name for name in found if not [*ROOT.glob(name.rstrip("/"))]]
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    return gone + [name for name in links if not (document.parent / name).exists()]


def test_every_path_that_a_document_names_exists(tmp_path: Path) -> None:
    documents = [path for path in written(".md") if path.name != "CHANGELOG.md"]
    assert {"README.md", "SECURITY.md", "CONTRIBUTING.md"} <= {path.name for path in documents}
    assert [gap for path in documents for gap in named(path, missing_paths(path))] == []
    wrong = tmp_path / "wrong.md"
    wrong.write_text(
        "`tests/gone.py::test_x` `tests/*.py` `GET /tests` [a](gone.md) [b](wrong.md#c)"
    )
    assert missing_paths(wrong) == ["tests/gone.py", "gone.md"]


def test_every_invariant_names_the_test_that_holds_it() -> None:
    lines = source_of(ROOT / "docs" / "invariants.md").splitlines()
    invariants = [line for line in lines if line.startswith("- Invariant: ")]
    assert len(invariants) >= 20
    held = re.compile(r"`tests/[^`]+[.]py`|import-linter")
    assert [line for line in invariants if not held.search(line)] == []


def test_every_promise_of_the_run_page_has_its_browser_test() -> None:
    folder = ROOT / "tests" / "browser"
    promises = tomllib.loads(source_of(folder / "requirements.toml"))
    assert len(promises) >= 28
    for path, _, test in (each["test"].partition("::") for each in promises.values()):
        assert f"\ndef {test}(" in source_of(folder / path), test


def test_the_reference_lists_every_public_name_of_the_kernel() -> None:
    body = tree_of(source_of(ROOT / "nanovm_core" / "public.py")).body
    public = [each.names[0].asname for each in body if isinstance(each, ast.ImportFrom)]
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(name for name in listed if "." not in name) == sorted(map(str, public))
    headings = re.findall("^### (.+)$", source_of(ROOT / "docs" / "api.md"), re.M)
    assert headings == [name.rpartition(".")[2] for name in listed]


def test_the_documents_name_every_command_and_every_setting() -> None:
    commands = {
        path.stem
        for path in files(".py")
        if path.parent.name == "commands" and not path.stem.startswith("_")
    }
    settings = {"CHROMIUM", *SETTINGS}
    for path in written(".py"):
        if name_of(path).split("/")[0] in PACKAGES:
            settings |= environment_settings(source_of(path))
    assert "demo" in commands
    assert {"NANOVM_DATA", "REDIS_URL", "STRIPE_SECRET_KEY", "PORT"} <= settings
    documents = "\n".join(
        source_of(ROOT / name) for name in ("README.md", "ARCHITECTURE.md", "CAVEATS.md")
    )
    assert undocumented(commands, settings, documents) == []


def test_an_unnamed_command_or_setting_is_seen() -> None:
    assert undocumented({"erase"}, {"PORT"}, "`manage.py erase`, PORT") == []
    assert undocumented({"erase"}, {"PORT"}, "we erase; PORTS") == ["manage.py erase", "PORT"]
    source = "environ.get('A'); os.environ['B']; os.getenv('C', ''); other.get('D')"
    assert environment_settings(source) == {"A", "B", "C"}
