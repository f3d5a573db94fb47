"""How an agent uses its token: texts to paste, each with this site's address."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from nanovm_core.core.authority.capabilities import ArgSpec, Tool

SAMPLES: Mapping[str, Any] = {"integer": 1, "decimal": 1, "boolean": True, "list": []}


def ways(address: str, token: str, tools: Sequence[Tool]) -> list[tuple[str, str]]:
    """For MCP, curl and Python: a title, and a call of the simplest of ``tools`` with its report.

    The token is ASCII without quotes.
    """
    bearer = f"Bearer {token}"
    url, headers = f"{address}/gate/mcp", {"Authorization": bearer}
    mcp = {"mcpServers": {"nanovm": {"type": "http", "url": url, "headers": headers}}}
    found = [(each.name, _needed(each)) for each in tools]
    tool, args = min(found, key=lambda each: len(each[1]), default=("", {}))
    call = json.dumps({"request": "first-call", "tool": tool, "args": args})
    quoted = call.replace("'", r"\u0027")
    curl = (
        f"curl {address}/gate/v1/calls{{}} -w '\\n' \\\n  -H 'Authorization: {bearer}' \\\n"
        f"  -H 'Content-Type: application/json' \\\n  -d '{{}}'"
    )
    report = curl.format("/first-call/report", '{"outcome": "done"}')
    curl = f"{curl.format('', quoted)}\n# allowed: make the call, then report it:\n{report}"
    python = (
        f"# in the folder of nanovm: pip install ./nanovm_client\n"
        f"from nanovm_client import Gate\n\ngate = Gate({address!r}, {token!r})\n"
        f"said = gate.call({tool!r}, {args!r})\nprint(said.verdict, said.rule, said.why)\n"
        "if said.warrant:  # make the call here, then report it\n"
        '    print(gate.report(said.request, "done").verdict)'
    )
    return [("MCP configuration", json.dumps(mcp, indent=2)), ("curl", curl), ("Python", python)]


def _needed(tool: Tool) -> dict[str, Any]:
    """Arguments that its schema takes."""
    return {name: _sample(spec) for name, spec in tool.args.items() if not spec.optional}


def _sample(spec: ArgSpec) -> Any:
    return spec.one_of[0] if spec.one_of else SAMPLES.get(spec.type, "text")
