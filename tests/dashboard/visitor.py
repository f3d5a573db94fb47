"""Somebody with a browser: a client, the runs it made, and what it can read on a page."""

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from engine.queries import runs
from engine.queries.runs import RunHead
from engine.runtime import api, queue, terms
from engine.worker import drive

FORM = {"model": "faithful", "payment_method": "pm_card_visa", "pace": "real", "proposal": ""}
TRANSFER = '{"tool": "wire_transfer", "args": {"amount": 50000, "currency": "USD"}}'


class Visitor(Client):
    """A client that makes runs through the form and drives them to where they wait."""

    def twin(self) -> "Visitor":
        """Another client with the same cookies."""
        other = Visitor()
        other.cookies.load({name: each.value for name, each in self.cookies.items()})
        return other

    def make(self, sample: str = "plain", *, hold: bool = False, **form: Any) -> RunHead:
        """A new run. It is driven as far as it goes, unless it is held before the start."""
        held = {"hold": "on"} if hold else {}
        response = self.post("/runs/", {**FORM, "sample": sample, **held, **form})
        assert response.status_code == 303, response.content.decode()
        code = response["Location"].split("/")[2]
        return self.driven(code)

    def upload(self, name: str, content: bytes, **form: Any) -> RunHead:
        document = SimpleUploadedFile(name, content, content_type="application/pdf")
        return self.make(sample="", document=document, **form)

    def paused(self, step: str) -> RunHead:
        """A new run that goes step by step and is paused before this one."""
        run = self.make(pace="step")
        while run.step != step:
            self.command(run, "step")
            run = self.driven(run.code)
        return run

    def driven(self, code: str) -> RunHead:
        """What a worker would do, done here."""
        found = by_code(code)
        if found.running:
            drive.drive_patiently(found.id)
        return by_code(code)

    @contextmanager
    def pressed(self, path: str) -> Iterator[str]:
        """Where a press leads, while a worker does at once what it is woken for."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queue, "wake", lambda run_id, in_ms=0: drive.drive_patiently(run_id))
            response = self.post(path)
            assert response.status_code == 303
            yield response["Location"]

    def read(self, path: str, status: int = 200) -> str:
        """The text of a page, as HTML."""
        response = self.get(path)
        assert response.status_code == status, f"{path}: {response.status_code}"
        return response.content.decode()

    def refused(self, path: str, form: Any = None, status: int = 422) -> str:
        """The text of the page that comes back from a form, as HTML."""
        response = self.post(path, form or {})
        assert response.status_code == status, f"{path}: {response.status_code}"
        return response.content.decode()

    def command(self, run: RunHead, name: str, **form: Any) -> Any:
        """Press a button on a page that shows the run as ``run`` says."""
        return self.post(f"/runs/{run.code}/{name}/", {**seen(run), **form})

    def fire(self, run: RunHead, name: str, **form: Any) -> str:
        """Fire an injector; the address of its verdict."""
        response = self.post(f"/runs/{run.code}/attacks/{name}/", form)
        assert response.status_code == 303, response.content.decode()
        return response["Location"]

    def erase(self, run: RunHead, **form: Any) -> Any:
        given = {"reason": "art17-1-a", "confirm": f"ERASE {run.code}", **form}
        return self.post(f"/privacy/{run.code}/", given)


def seen(run: RunHead) -> dict[str, str]:
    """The hidden fields of a decision about a run's hold, on a page that is read now."""
    shown = {"hold": run.hold, "terms": terms.written(api.terms_now(run.id))}
    return shown if run.hold else {}


def by_code(code: str) -> RunHead:
    """A run whoever it belongs to."""
    from engine.models import Run

    return runs.head_of(Run.objects.get(code=code))


def words(page: str) -> str:
    """What a page says, without its tags."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def numbers(page: str) -> list[int]:
    """The events a page lists, in its order."""
    return [int(n) for n in re.findall(r'data-seq="(\d+)" data-tone', page)]


PAGES = (
    "/runs/{code}/",
    "/runs/{code}/events/1/",
    "/runs/{code}/events/1/bytes/",
    "/runs/{code}/events?after=0",
    "/runs/{code}/steps/1/",
    "/runs/{code}/calls/",
    "/runs/{code}/audit/",
    "/runs/{code}/audit/verify/",
    "/runs/{code}/report/",
    "/privacy/{code}/",
)
