"""The documents are true: their links lead somewhere, their lists are whole, their code runs."""

import ast
import base64
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from config.environment import SETTINGS
from docs.api import GROUPS
from docs.generate import PAGES
from nanovm_core.core.envelope import VERSION, canonical_hash
from nanovm_core.proof import merkle
from nanovm_core.verify import read_envelope
from tests.house.repository import ROOT, files, name_of, named, source_of, tree_of, written

PACKAGES = (
    "config",
    "dashboard",
    "sabotage",
    "pipeline",
    "gate",
    "engine",
    "reader",
    "nanovm_core",
    "stripe_sandbox",
)
CAVEATS_WORDS_MAX, CHANGELOG_WORDS_MAX = 3_500, 450  # of all caveats; of the newest version


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


def missing_paths(document: Path) -> Iterator[str]:
    """Paths that a document names in code, and links, that lead nowhere."""
    text = source_of(document)
    tops = "|".join(
        sorted({path.relative_to(ROOT).parts[0] for path in files() if "/" in name_of(path)})
    )
    for name in re.findall(rf"`((?:{tops})/[^\s`:{{}}]+)", text):
        if not [*ROOT.glob(name.rstrip("/"))]:
            yield name
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists() or (anchor and anchor not in anchors(source_of(target))):
            yield link


def anchors(text: str) -> set[str]:
    """The fragments that lead to a document's headings."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", prose, re.M)
    return {re.sub(r"[^\w\- ]", "", each).lower().replace(" ", "-") for each in headings}


def blocks(document: str, language: str) -> list[str]:
    """The fenced blocks of a document in one language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", source_of(ROOT / document), re.M | re.S)
    return [text for kind, text in found if kind == language]


def test_every_path_and_link_of_a_document_leads_somewhere() -> None:
    documents = written(".md")
    assert {"README.md", "SECURITY.md", "CONTRIBUTING.md"} <= {path.name for path in documents}
    assert [gap for path in documents for gap in named(path, [*missing_paths(path)])] == []


def test_a_reader_finds_every_document_from_the_readme() -> None:
    index, readme = source_of(ROOT / "docs" / "index.md"), source_of(ROOT / "README.md")
    listed = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", index)}
    assert {*written(".md")} - listed == {ROOT / "docs" / "index.md"}
    sought = ["index.md", "settings.md", "glossary.md#states-of-a-run", "api.md#transition"]
    sought += ["operations.md#backup", "operations.md#upgrade"]
    assert [link for link in sought if f"](docs/{link})" not in readme] == []
    assert "**quarantined**" in source_of(ROOT / "docs" / "glossary.md")


def test_caveats_and_changes_stay_short() -> None:
    assert len(source_of(ROOT / "CAVEATS.md").split()) <= CAVEATS_WORDS_MAX
    newest = source_of(ROOT / "CHANGELOG.md").split("\n## ")[1]
    assert len(newest.split()) <= CHANGELOG_WORDS_MAX


def test_the_code_of_the_readme_prints_what_it_shows() -> None:
    [code], [shown] = blocks("README.md", "python"), blocks("README.md", "console")
    assert len([line for line in code.splitlines() if line]) == 5
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout == (
        shown
    )


def test_the_hashes_of_the_annotated_envelope_are_right() -> None:
    page = source_of(ROOT / "docs" / "envelope.md")
    [shown], [code] = blocks("docs/envelope.md", "json"), blocks("docs/envelope.md", "python")
    note, proof = blocks("docs/envelope.md", "")
    envelope = json.loads(shown)
    canonical = json.dumps(
        envelope, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    found = canonical_hash(canonical)
    assert f"Its hash: `{found}`" in page
    program = f"envelope = {envelope!r}\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert ran.stdout.strip() == found == hashlib.sha256(b"\0" + canonical).hexdigest()
    assert (read_envelope(canonical), envelope["v"]) == (envelope, VERSION)
    fields = "".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in envelope if f"`{name}`" not in fields] == []
    origin, size, root = note.splitlines()[:3]
    path = [base64.b64decode(each) for each in proof.split()]
    leaf, place = bytes.fromhex(found), (envelope["seq"], int(size))
    assert merkle.check_inclusion(leaf, *place, path, base64.b64decode(root))
    assert origin == envelope["log"]


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


def test_generated_documents_are_what_their_sources_give() -> None:
    assert [name for name, page in PAGES.items() if page() != source_of(ROOT / "docs" / name)] == []


def test_the_documents_name_every_command_and_every_setting() -> None:
    commands = {
        path.stem
        for path in files(".py")
        if path.parent.name == "commands" and not path.stem.startswith("_")
    }
    settings = {"CHROMIUM", *SETTINGS}
    for path in written(".py"):
        if name_of(path).split("/")[0] in PACKAGES:
            source = source_of(path)
            settings |= environment_settings(source) if "env" in source else set()
    assert "demo" in commands
    assert {"NANOVM_DATA", "REDIS_URL", "STRIPE_SECRET_KEY", "PORT"} <= settings
    assert undocumented(commands, set(), source_of(ROOT / "docs" / "commands.md")) == []
    assert undocumented(set(), settings, source_of(ROOT / "docs" / "settings.md")) == []
