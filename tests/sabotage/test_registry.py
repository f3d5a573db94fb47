"""The attacks by name, and that starting Django imports none of them."""

from pathlib import Path

import pytest

from sabotage.gallery import SCENARIOS
from sabotage.injectors import INJECTORS
from sabotage.kit.injector import Injector
from sabotage.models import Attack
from tests.house.demo import ran

START = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
import django
django.setup()
import config.urls
rooms = ("sabotage.injectors.", "sabotage.gallery.")
loaded = {name for name in sys.modules if name.startswith(rooms)}
loaded |= {"sabotage.campaign", "sabotage.run_baseline", "reportlab", "pypdf"} & {*sys.modules}
print(*sorted(loaded - {"sabotage.gallery.kit", "sabotage.gallery.kit.scenario"}))
"""


def test_starting_django_and_its_pages_imports_no_attack(tmp_path: Path) -> None:
    done = ran(tmp_path, "-c", START)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr


def test_each_name_finds_the_attack_of_that_name() -> None:
    assert [attack.name for attack in INJECTORS.values()] == list(INJECTORS)
    assert [scenario.name for scenario in SCENARIOS.values()] == list(SCENARIOS)
    assert (len(INJECTORS), len(SCENARIOS)) == (5, 18)


@pytest.mark.parametrize(
    "injector", [*INJECTORS.values(), *(each.injector for each in SCENARIOS.values())]
)
def test_every_attack_has_its_words_and_defaults_that_are_choices(injector: Injector) -> None:
    assert len(injector.name) <= (Attack._meta.get_field("injector").max_length or 0)
    assert all((injector.claim, injector.wants, injector.stopped_by))
    values = injector.read({})
    assert all(not each.choices or values[each.name] in each.choices for each in injector.params)
