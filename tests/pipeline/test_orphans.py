"""A crash while a run is made leaves keys and a document of no run: they are destroyed later."""

import pytest

from pipeline import intake, orphans
from pipeline.keystore import keystore
from pipeline.models import Run
from pipeline.vaultstore import media
from tests.pipeline.house import House


class CrashError(BaseException):
    """The process is gone: nothing catches it."""


def crash(*_: object) -> None:
    raise CrashError


def test_document_of_a_run_that_was_never_stored_is_destroyed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = house.run()
    refs, files = set(keystore().refs()), set(media().iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(intake, "make_run", crash)
        with pytest.raises(CrashError):
            house.new()
    assert Run.objects.count() == 1
    assert len(keystore().refs()) == len(refs) + 2
    assert orphans.destroy_orphans() == (0, 0)  # a run that is being made looks just so
    monkeypatch.setattr(orphans, "AGE_MS_MIN", -60_000)
    assert orphans.destroy_orphans() == (2, 1)
    assert set(keystore().refs()) == refs
    assert set(media().iterdir()) == files
    assert keystore().subjects() == [str(paid.id)]
