"""Stripe's published OpenAPI document, turned into validators for what the counterpart answers."""

import functools
import json
import re
from pathlib import Path
from typing import Any, get_args

import stripe
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tests.house.demo import ROOT as REPOSITORY
from tests.stripe_sandbox.door import INTENTS, Answer

SPEC_PATH: Path = REPOSITORY.parent / "shared" / "data" / "stripe" / "openapi.json"
ROOT = "urn:stripe-openapi"
LISTS = {INTENTS: "list", f"{INTENTS}/search": "search"} | {
    f"/v1/{name}": name for name in ("disputes", "events", "payouts", "refunds")
}
"""The lists whose published shape is held, and what they are called here."""
SDK_CLASSES: dict[str, Any] = {
    "transfer": stripe.Transfer,
    "transfer_reversal": stripe.TransferReversal,
    "webhook_endpoint": stripe.WebhookEndpoint,
}
"""Objects that the document leaves out: their fields are those of the SDK's classes."""


is_code, formats = re.compile("[a-z]{3}").fullmatch, FormatChecker(formats=())
formats.checks("currency")(lambda value: not isinstance(value, str) or is_code(value) is not None)
formats.checks("unix-time")(lambda value: not isinstance(value, int) or value > 1_000_000_000)


def json_schema(node: Any) -> Any:
    """Translate OpenAPI 3.0 to JSON Schema: ``nullable`` and the closed world.

    ``nullable: true`` adds null to ``type``, ``enum`` and ``anyOf``. An object schema that lists
    its properties and says nothing of others gets ``additionalProperties: false``: Stripe's
    document lists every field that a 2xx body may hold, so a field that it lacks is an invention.
    """
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {name: json_schema(value) for name, value in node.items() if name != "properties"}
    if "properties" in node:  # names of properties are not keywords: one may be called "nullable"
        out["properties"] = {name: json_schema(sub) for name, sub in node["properties"].items()}
        out.setdefault("additionalProperties", False)
    return _with_null(out) if node.get("nullable") is True else out


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    out = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        out["enum"] = [*schema["enum"], None]
    return out


def _listed(document: dict[str, Any], path: str) -> Any:
    answer = document["paths"][path]["get"]["responses"]["200"]
    return answer["content"]["application/json"]["schema"]


class Shapes:
    """Validators by the name of a schema in the document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.resources = document["components"]["schemas"]
        contents = {
            "components": {"schemas": {n: json_schema(s) for n, s in self.resources.items()}},
            **{name: json_schema(_listed(document, path)) for path, name in LISTS.items()},
        }
        resource = DRAFT202012.create_resource(contents)
        self._registry: Registry[Any] = Registry().with_resource(ROOT, resource)

    def faults(self, name: str, body: Any) -> list[str]:
        """Say where ``body`` departs from schema ``name`` ("list" is the list of intents)."""
        if name in SDK_CLASSES:
            return _sdk_faults(SDK_CLASSES[name], body)
        pointer = f"/{name}" if name in LISTS.values() else f"/components/schemas/{name}"
        validator = Draft202012Validator(
            {"$ref": f"{ROOT}#{pointer}"}, registry=self._registry, format_checker=formats
        )
        return [
            f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(body)
        ]

    def check(self, path: str, answer: Answer) -> None:
        """Raise AssertionError unless the answer has the shape that belongs to it."""
        if not path.startswith("/v1/"):
            return
        body = answer.body
        name = "error" if answer.status >= 400 else body["object"]
        if name in ("list", "search_result"):
            name = LISTS.get(path, "each")
        if name == "each":  # the list is not in the document: its objects are held
            found = [fault for each in body["data"] for fault in self.faults(each["object"], each)]
        else:
            found = self.faults(name, body)
        assert not found, f"{path} answered {answer.status}, not a {name}: {found}"


def _sdk_faults(kind: Any, body: dict[str, Any]) -> list[str]:
    """Fields that the SDK does not know, and those that it says are always there and are not."""
    fields = {
        name: type(None) in get_args(hint)
        for name, hint in kind.__annotations__.items()
        if name != "OBJECT_NAME"
    }
    gone = [name for name, may_be_null in fields.items() if not may_be_null and name not in body]
    inner = body.get("reversals", {"data": []})["data"]
    gone += [fault for each in inner for fault in _sdk_faults(SDK_CLASSES[each["object"]], each)]
    return [f"invented: {name}" for name in body.keys() - fields] + gone


@functools.cache
def published() -> Shapes | None:
    """Return the published shapes, or None where the shared file is missing."""
    if not SPEC_PATH.is_file():
        return None
    return Shapes(json.loads(SPEC_PATH.read_text(encoding="utf-8")))
