"""The kernel's wheel holds every module of the kernel, and needs two libraries alone."""

import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

from tests.house.demo import ROOT

SOURCES = ("pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
IMPORT_ALL = "import importlib, sys; [importlib.import_module(name) for name in sys.argv[1:]]"


def built(folder: Path) -> Path:
    """A wheel that was built from a copy of the sources, without the network."""
    source, wheels = folder / "source", folder / "wheels"
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "nanovm_core", source / "nanovm_core", ignore=hidden)
    for name in SOURCES:
        shutil.copy(ROOT / name, source)
    (source / "pipeline").mkdir()
    (source / "pipeline" / "__init__.py").touch()  # a package that is not the kernel's
    command = [sys.executable, "-c", BUILD, str(wheels)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [wheel] = wheels.iterdir()
    return wheel


def with_dependencies(folder: Path, *names: str) -> None:
    """Link installed distributions into a folder of packages."""
    for name in names:
        found = metadata.distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            if not (folder / top).exists():
                (folder / top).symlink_to(str(found.locate_file(top)))


def test_the_wheel_imports_beside_cryptography_and_orjson_alone(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    with zipfile.ZipFile(built(tmp_path)) as wheel:
        wheel.extractall(packages)
    modules = {path.relative_to(packages) for path in packages.rglob("*.py")}
    assert modules == {path.relative_to(ROOT) for path in (ROOT / "nanovm_core").rglob("*.py")}
    assert (packages / "nanovm_core" / "py.typed").exists()
    with_dependencies(packages, "cryptography", "cffi", "pycparser", "orjson")
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in modules]
    imported = subprocess.run(
        [sys.executable, "-S", "-c", IMPORT_ALL, *sorted(names)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
    )
    assert imported.stderr == ""
    assert imported.returncode == 0
