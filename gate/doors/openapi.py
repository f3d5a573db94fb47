"""What the door takes and answers, for machines: JSON Schema of a tool, OpenAPI of a program."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gate.application import granted
from nanovm_core.core.authority.capabilities import ArgSpec, Tool
from nanovm_core.core.program import Program
from nanovm_core.decimals import decimal_of

Schema = dict[str, Any]
SOURCE = Path(__file__).with_name("openapi.json").read_bytes()  # without the tools of a program
SCHEMAS: Schema = json.loads(SOURCE)["components"]["schemas"]
WAIT_S_MAX = 25
_DECIMAL = "Exact: a number or its text, with at most {} digits after the point."
_PLAIN = "^([!-~]([ -~]*[!-~])?)?$"  # printable ASCII, without a blank at an end
_SEALED = "Kept sealed: rules, log and pages have a reference to it."


def schema_of(tool: Tool) -> Schema:
    """JSON Schema (2020-12) of a tool's arguments: what it refuses, the gate refuses.

    The gate refuses more: a decimal's text has bounds and listed values too, a grant may be
    narrower, and it takes no 5.0 for an integer, no exponent, no more digits, and no {{…}}.
    """
    needed = [name for name, spec in tool.args.items() if not spec.optional]
    return _object({name: _argument(spec) for name, spec in tool.args.items()}, needed)


def tools_of(program: Program) -> list[Schema]:
    """The granted tools: name, schema of the arguments, and who performs the call."""
    return [
        {"name": tool.name, "args": schema_of(tool), "performed_by": "gate" if tool.at else "you"}
        for tool in granted(program)
    ]


def document(program: Program, server: str) -> Schema:
    """The OpenAPI 3.1 description of the gate, as a token of this program may use it."""
    found: Schema = json.loads(SOURCE)
    asked = {"request": SCHEMAS["Request"]}
    body = found["paths"]["/calls"]["post"]["requestBody"]["content"]["application/json"]
    body["schema"]["oneOf"] = [
        _object({**asked, "tool": {"const": tool.name}, "args": schema_of(tool)})
        for tool in granted(program)
    ]
    found["info"] |= {"title": f"Gate of {program.name}", "version": program.hash[:12]}
    return {**found, "servers": [{"url": f"{server}gate/v1"}]}


def _argument(spec: ArgSpec) -> Schema:
    found = {"anyOf": [_typed(spec), {"type": "null"}]} if spec.optional else _typed(spec)
    return found if spec.default is None else {**found, "default": _shown(spec, spec.default)}


def _typed(spec: ArgSpec) -> Schema:
    if spec.type == "list":
        items = _typed(replace(spec, type=spec.item))
        return {"type": "array", "items": items, "maxItems": spec.items_max}
    if spec.type == "ref":
        return {"type": "string", "description": _SEALED}
    found: Schema = {"type": spec.type}
    if spec.type == "string":
        found["maxLength"] = spec.length_max
        found |= {"pattern": _PLAIN} if spec.plain else {}
    if spec.type == "decimal":
        more = rf"(\.[0-9]{{1,{spec.places}}})?" if spec.places else ""
        found = {"type": ["number", "string"], "pattern": f"^-?(0|[1-9][0-9]{{0,15}}){more}$"}
        found["description"] = _DECIMAL.format(spec.places)
    for key, bound in (("minimum", spec.min), ("maximum", spec.max)):
        if bound is not None:
            found[key] = bound if spec.type == "integer" else float(decimal_of(bound, spec.places))
    if spec.one_of is not None and spec.item != "decimal":  # one value of which has many texts
        found["enum"] = [*spec.one_of]
    return found


def _shown(spec: ArgSpec, value: Any) -> Any:
    """A value as a caller writes it: an amount of minor units as text."""
    if isinstance(value, tuple):
        return [_shown(spec, each) for each in value]
    return decimal_of(value, spec.places) if spec.item == "decimal" else value


def _object(fields: Schema, needed: Sequence[str] | None = None) -> Schema:
    required = [*(fields if needed is None else needed)]
    known = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**known, "required": required}
