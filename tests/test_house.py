"""The rules of the house: sizes, bans, names, documents."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.house.repository import ROOT, files, name_of, named, source_of, tree_of, written

LINES_MAX = 400  # of a test's module too
VERIFIER_LINES_MAX = 1_450
FUNCTION_LINES_MAX = 40
FILE_BYTES_MAX = 300_000
FOLDER_MODULES_MAX = 18  # without __init__.py
HOUSE_ENTRIES_MAX = 21

HOMELESS = {
    *("utils", "util", "helpers", "helper", "common", "shared", "services", "constants"),
    *("types", "misc", "stuff", "lib"),
}
KERNEL_IMPORTS = {
    *("django", "celery", "channels", "stripe", "os", "io", "pathlib", "socket", "time"),
    *("datetime", "random", "secrets", "uuid", "logging", "asyncio", "threading"),
    *("importlib", "subprocess", "ctypes", "builtins"),
}
KERNEL_CALLS = {"open", "eval", "exec", "compile", "print", "input", "__import__", "breakpoint"}
TEMPLATE_BANS = {
    "an inline script": re.compile(
        r"<script\b(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", re.I
    ),
    "a script with a body": re.compile(r"<script\b[^>]*\bsrc=[^>]*>\s*[^\s<]", re.I),
    "an inline style": re.compile(r"<style\b|\sstyle\s*=", re.I),
    "an inline handler": re.compile(r"<[a-z][^>]*\son[a-z]+\s*=", re.I),
    "unescaped text": re.compile(r"\|\s*safe\b|autoescape\s+off"),
    "a javascript address": re.compile(r"javascript:", re.I),
}
FOREIGN_WORDS = {
    "a machine's path": re.compile(r"(?<![\w.~}/-])/(?:home|root|work|tmp|Users)/\w"),
    "a registry's host": re.compile(r"pypi[.]org|pythonhosted[.]|npmjs[.]|deb[.]debian[.]"),
}


def too_long(path: Path) -> list[str]:
    """A module over its limit."""
    limit = LINES_MAX
    if path.name == "verify.py" and path.parent.name == "nanovm_core":
        limit = VERIFIER_LINES_MAX
    lines = len(path.read_text(encoding="utf-8").splitlines())
    return [f"{name_of(path)} has {lines} lines of at most {limit}"] if lines > limit else []


def long_functions(source: str) -> list[str]:
    """Functions over the limit, from ``def`` to their last line."""
    return [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]


def kernel_sins(source: str) -> Iterator[str]:
    """What a pure module must not do: reach outside, or count in floats."""
    for node in ast.walk(tree_of(source)):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case ast.Name(id=name) if name in KERNEL_CALLS:
                yield f"line {node.lineno}: {name}"
                continue
            case ast.Constant(value=float() | complex() as number):
                yield f"line {node.lineno}: {number}"
                continue
            case _:
                continue
        for module in modules:
            if module.split(".")[0] in KERNEL_IMPORTS:
                yield f"line {node.lineno}: import {module}"


def vendoring_gaps(folder: Path) -> list[str]:
    """Third-party files that are not the recorded ones, or have no licence beside them."""
    lines = (folder / "HASHES").read_text(encoding="utf-8").splitlines()
    recorded = {name: digest for digest, name in (line.split() for line in lines if line)}
    present = {path.name for path in folder.iterdir()} - {"HASHES"}
    gaps = [f"{name} is not recorded" for name in sorted(present - {*recorded})]
    for name, digest in recorded.items():
        if name not in present:
            gaps.append(f"{name} is missing")
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            gaps.append(f"{name} is not the recorded file")
    for name in sorted(present):
        product = re.sub(r"(\.min)?\.(js|css)$", "", name)
        if product != name and f"{product}.LICENSE" not in present:
            gaps.append(f"{name} has no licence beside it")
        if not re.search(r"\d+\.\d+", name):
            gaps.append(f"{name} does not say its version")
    return gaps


def matches(bans: dict[str, re.Pattern[str]], text: str) -> list[str]:
    """Which bans a text breaks, and where."""
    return [
        f"line {text.count(chr(10), 0, hit.start()) + 1}: {what} ({hit.group(0).strip()[:60]})"
        for what, pattern in bans.items()
        for hit in pattern.finditer(text)
    ]


def problems(paths: list[Path], check: Callable[[str], Iterable[str]]) -> list[str]:
    """What a check finds in the sources of these files."""
    return [each for path in paths for each in named(path, list(check(source_of(path))))]


def test_no_module_is_longer_than_its_limit() -> None:
    assert [problem for path in written(".py") for problem in too_long(path)] == []


def test_no_function_is_longer_than_the_limit() -> None:
    assert problems(written(".py"), long_functions) == []


def test_the_kernel_reaches_nothing_outside() -> None:
    kernel = [path for path in written(".py") if ROOT / "nanovm_core" in path.parents]
    assert len(kernel) >= 40
    assert problems([path for path in kernel if path.name != "verify.py"], kernel_sins) == []


@pytest.mark.parametrize(
    "sin",
    [
        *("import time", "from datetime import date", "import os.path", "from django import db"),
        *("__import__('os')", "from importlib import import_module", "open('x')", "x = print"),
        *("eval('1')", "exec('')", "input()", "rate = 0.5", "x = 1e3", "x = 2j"),
    ],
)
def test_each_sin_of_a_kernel_module_is_seen(sin: str) -> None:
    assert len(list(kernel_sins(sin))) == 1


def test_third_party_files_are_the_recorded_ones() -> None:
    assert vendoring_gaps(ROOT / "static" / "vendor") == []


def test_templates_hold_nothing_that_the_policy_forbids() -> None:
    templates = written(".html")
    assert templates
    assert problems(templates, partial(matches, TEMPLATE_BANS)) == []


def test_only_webhooks_and_the_gate_do_without_the_csrf_token() -> None:
    exempt = "csrf" + "_exempt"
    holders = {name_of(path) for path in written(".py") if exempt in source_of(path)}
    assert {name for name in holders if "webhook" not in name} == {"gate/urls.py"}


def test_no_file_is_too_big_for_a_reader() -> None:
    assert [name_of(path) for path in files() if path.stat().st_size > FILE_BYTES_MAX] == []


def is_text(path: Path) -> bool:
    """Whether a file is no picture and no PDF."""
    try:
        source_of(path)
    except UnicodeDecodeError:
        return False
    return True


def test_no_word_is_from_somewhere_else() -> None:
    here = {"this checkout's path": re.compile(re.escape(f"{ROOT}/"))}
    texts = [path for path in written() if is_text(path)]
    assert problems(texts, partial(matches, {**FOREIGN_WORDS, **here})) == []


def test_no_folder_has_more_modules_than_a_reader_takes_in() -> None:
    counted = Counter(path.parent for path in written(".py") if path.name != "__init__.py")
    assert [name_of(each) for each, n in counted.items() if n > FOLDER_MODULES_MAX] == []


@pytest.mark.parametrize("house", ["engine", "pipeline", "reader"])
def test_each_house_is_seen_at_a_glance(house: str) -> None:
    names = [name_of(path).split("/") for path in files()]
    assert 8 < len({parts[1] for parts in names if parts[0] == house}) <= HOUSE_ENTRIES_MAX


def test_every_function_has_a_room_with_a_name() -> None:
    assert [name_of(path) for path in written(".py") if path.stem in HOMELESS] == []
    folders = {part for path in written(".py") for part in path.relative_to(ROOT).parts[:-1]}
    assert folders & HOMELESS == set()


def test_every_module_says_what_lives_in_it() -> None:
    sources = {name_of(path): source_of(path) for path in written(".py")}
    spoken = {name for name, source in sources.items() if ast.get_docstring(tree_of(source))}
    assert {name for name, source in sources.items() if source.strip()} - spoken == set()


def test_the_licence_is_apache_2() -> None:
    text = source_of(ROOT / "LICENSE")
    assert re.search("Apache License\\s+Version 2.0, January 2004", text)
    assert "END OF TERMS AND CONDITIONS" in text


def locked(name: str) -> dict[str, list[str]]:
    """The hashes of a lock file, by product and version."""
    text = source_of(ROOT / name).split("make lock\n", 1)[1]
    assert not re.search(r"https?:|file:|--index|--find-links|--extra|^-", text, re.M)
    entries = re.split(r"\n(?=[a-z])", text)
    return {each.split()[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", each) for each in entries}


def test_the_lock_files_are_complete_agree_and_name_no_place() -> None:
    running, testing = locked("requirements.txt"), locked("requirements-test.txt")
    assert len(running) > 50
    assert [name for name, hashes in [*running.items(), *testing.items()] if not hashes] == []
    products = {name.partition("==")[0] for name in running}
    both = {name: hashes for name, hashes in testing.items() if name.partition("==")[0] in products}
    assert {"cryptography", "django"} <= {name.partition("==")[0] for name in both}
    assert both.items() <= running.items()
    assert not products & {"pytest", "mypy", "playwright", "ruff", "hypothesis", "django-stubs"}
