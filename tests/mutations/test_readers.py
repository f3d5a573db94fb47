"""A copy's reading children: confined, and without the guards that the copy lacks."""

from pathlib import Path

import pytest

from tests.mutations.test_tools import ran

pytestmark = pytest.mark.soak
READS = """
import django
django.setup()
from mutations.readers import lack_guards_too
from reader import extract, sandbox
from sabotage.gallery.kit.hidden_page import with_another_total
lack_guards_too()
found = extract(with_another_total("white_on_white", "EUR 1,000.00", "EUR 9,000.00"))
crops = ", ".join(crop.name for crop in found.crops)
print(sorted(sandbox.confinement()), found.fields.pay_status, "|", crops)
"""


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (["owed-by-holder"], "hidden_text |"),
        (["only-what-is-seen-counts"], "hidden_text | amount due, shown differently"),
        (
            ["only-what-is-seen-counts", "pixels-are-read"],
            "open | amount due",
        ),
    ],
)
def test_each_layer_holds_and_without_all_the_hidden_sum_is_read(
    without: list[str], said: str, tmp_path: Path
) -> None:
    script = tmp_path / "reads.py"
    script.write_text(READS)
    done = ran("-m", "mutations", *without, "--", str(script))
    assert done.stdout.strip() == f"['confined'] {said}", done.stderr
