"""Two workspaces: what is one visitor's does not exist for the other."""

import pytest

from tests.dashboard.visitor import PAGES, Visitor, by_code

COMMANDS = ("start", "pause", "resume", "step", "approve", "decline", "kill")


@pytest.fixture
def stranger(visitor: Visitor) -> Visitor:
    """A visitor who has a workspace and a run of their own."""
    other = Visitor()
    other.make(hold=True)
    return other


def test_no_page_of_a_run_exists_for_a_stranger(visitor: Visitor, stranger: Visitor) -> None:
    run = visitor.make()
    attack = visitor.fire(run, "tool_injection")
    visitor.erase(run)
    certificates = [f"/privacy/certificates/{run.code}{end}" for end in ("/", ".json")]
    for path in [*(path.format(code=run.code) for path in PAGES), attack, *certificates]:
        visitor.read(path)
        stranger.read(path, 404)
        Visitor().read(path, 404)


def test_no_command_of_a_stranger_reaches_a_run(visitor: Visitor, stranger: Visitor) -> None:
    run = visitor.make(pace="step")
    posts = [f"/runs/{run.code}/{name}/" for name in COMMANDS]
    posts += [f"/runs/{run.code}/attacks/tool_injection/", f"/runs/{run.code}/audit/verify/"]
    posts += [f"/privacy/{run.code}/"]
    form = {"reason": "art17-1-a", "confirm": f"ERASE {run.code}"}
    for path in posts:
        assert stranger.post(path, form).status_code == 404, path
    assert by_code(run.code) == run


def test_no_list_shows_a_strangers_run(visitor: Visitor, stranger: Visitor) -> None:
    run = visitor.make()
    visitor.fire(run, "tool_injection")
    for path in ("/", "/runs/", "/audit/", f"/audit/?run={run.code}", f"/runs/?q={run.code}",
                 "/runs/?attack=tool_injection"):  # fmt: skip
        page = stranger.read(path)
        assert f"/runs/{run.code}/" not in page, path
        assert run.head not in page


def test_an_attack_belongs_to_its_run(visitor: Visitor) -> None:
    one, two = visitor.make(), visitor.make()
    attack = visitor.fire(one, "tool_injection")
    visitor.read(attack.replace(one.code, two.code), 404)
