"""No copy of a key is left behind by a crash."""

from pathlib import Path

from pipeline.evidence.signer.keys import HALF
from tests.crash.crashes import SECOND_MS, wrecks
from tests.crash.sim import opened
from tests.crash.stories import ROTATED


def test_no_copy_of_a_key_is_left(data: Path) -> None:
    bad = []
    for story in (ROTATED,):
        for left in wrecks(story, data, lambda point: "link" in point or "fsync" in point)[0]:
            with opened(left.folder, left.world) as sim:
                sim.restart(1, SECOND_MS)
                story.tell(sim)
                sim.settle()
                bad += [
                    (left.number, left.point, str(file.relative_to(left.folder)))
                    for file in left.folder.rglob("*")
                    if file.is_file()
                    and file.stat().st_size == 32
                    and file.name not in ("kek", "warrant_key", "key")
                    and file.suffix != HALF  # public; tests/pipeline/evidence/test_restore_again.py
                ]
    assert bad == []
