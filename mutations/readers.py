"""The children in which a copy reads its documents: without the guards that the copy lacks."""

from dataclasses import asdict

from mutations.patching import installed
from reader import sandbox

READER = "reader/"
_FIRST = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from mutations.patching import Mutation, install;"
    " install(*(Mutation(**each) for each in {mutations!r})); "
)


def lack_guards_too() -> None:
    """Have this process start its reading children without those guards of the reader.

    Each is a fresh interpreter: the guards are removed before it imports anything else of ours.
    It is confined as ever.
    """
    mutations = [asdict(each) for each in installed() if each.file.startswith(READER)]
    if mutations:
        vars(sandbox)["_BOOT"] = _FIRST.format(mutations=mutations) + sandbox._BOOT
