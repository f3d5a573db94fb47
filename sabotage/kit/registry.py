"""Attacks by name; the module of each is imported when it is first asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """One ``attribute`` of each of a package's modules, by the module's name.

    Starting Django, listing the names and routing a request import none of them.
    """

    def __init__(self, package: str, attribute: str, names: tuple[str, ...]) -> None:
        self._package, self._attribute, self._names = package, attribute, names

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        found: T = getattr(import_module(f"{self._package}.{name}"), self._attribute)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
