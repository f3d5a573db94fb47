"""A crash while a run is made leaves keys and a document of no run: they are destroyed later."""

import pytest

from pipeline.models import Run
from pipeline.privacy import garbage_collection
from pipeline.runtime import create_run
from pipeline.vault.key_store import keystore
from pipeline.vault.secret_store import media
from tests.pipeline.house import House, crash


def test_document_of_a_run_that_was_never_stored_is_destroyed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = house.run()
    refs, files = set(keystore().refs()), set(media().iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(create_run, "make_run", crash)
        with pytest.raises(KeyboardInterrupt):
            house.new()
    assert Run.objects.count() == 1
    assert len(keystore().refs()) == len(refs) + 2
    assert garbage_collection.destroy_orphans() == (0, 0)  # a run that is being made looks just so
    monkeypatch.setattr(garbage_collection, "AGE_MS_MIN", -60_000)
    assert garbage_collection.destroy_orphans() == (2, 1)
    assert set(keystore().refs()) == refs
    assert set(media().iterdir()) == files
    assert keystore().subjects() == [str(paid.id)]
