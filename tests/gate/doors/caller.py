"""An agent from outside at the HTTP door, and what each answer of it has to be like."""

import json
from typing import Any, NamedTuple

from django.test import Client
from jsonschema import Draft202012Validator

from engine.models import Run
from gate.doors import openapi
from tests.gate.conftest import Desk

CALL = {"request": "1", "tool": "mail", "args": {"to": "ada", "body": "Hello"}}


class Answer(NamedTuple):
    """An answer that has the form which openapi.json says it has."""

    status: int
    said: Any
    headers: Any


class Caller:
    """Sends what a test gives it, with the token of the desk's agent unless another is given."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.client = (
            desk,
            Client(enforce_csrf_checks=True, raise_request_exception=False),
        )

    def send(
        self,
        body: Any = CALL,
        path: str = "calls",
        method: str = "POST",
        kind: str = "application/json",
        **headers: str,
    ) -> Answer:
        """The answer; a body that is not bytes is written as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body)
        own = {"Authorization": f"Bearer {self.desk.token}"}
        sent = {**own, **{name.replace("_", "-"): text for name, text in headers.items()}}
        response = self.client.generic(
            method, f"/gate/v1/{path}", data, kind, headers={k: v for k, v in sent.items() if v}
        )
        assert response.headers["Content-Type"] == "application/json", response.content
        assert response.headers["Cache-Control"] == "no-store"
        said = json.loads(response.content)
        form = "Error" if response.status_code >= 400 else "Reply"
        if path.partition("?")[0].startswith("calls") or form == "Error":
            Draft202012Validator(openapi.SCHEMAS[form]).validate(said)
        return Answer(response.status_code, said, response.headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send(b"", path, "GET", **headers)

    def call(self, request: str, tool: str = "mail", wait: int = 0, **args: Any) -> Answer:
        """A call of this tool; of what it is not told, the usual."""
        usual = {"mail": CALL["args"], "send": {"to": "ada", "cents": 120}}[tool]
        asked = {"request": request, "tool": tool, "args": {**usual, **args}}  # type: ignore[dict-item]
        return self.send(asked, f"calls?wait={wait}")

    def done_nothing(self) -> bool:
        """Whether no run was made and nothing performed."""
        return not Run.objects.exists() and not self.desk.sent
