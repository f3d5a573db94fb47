"""The bank: an MCP server that makes every transfer it is asked for, and lists what it made."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

import gate
from engine.ops.processes import LOOPBACK, free_port

PAY, UNLISTED = "send_money", "update_scheduled_transaction"
LATER = "schedule_transaction"  # whoever asks performs it, under the warrant
PROGRAM, SAYS, TAKES = "attacked_bank", "Sends money.", {"type": "object"}
SHIPPED = Path(str(gate.__file__)).with_name("programs")
POLICY = "policies/bank_assistant.toml"
UPSTREAMS = f'[upstreams.bank]\nkind = "mcp"\nurl = "http://{LOOPBACK}:%d/mcp"\n'
# A person is asked for large payments of one tool, and after 3,000.00 today.
CHANGED = {
    '"bank_assistant"': f'"{PROGRAM}"',
    POLICY: "policy.toml",
    "money_minor_max = 250_000": "money_minor_max = 500_000",
    f'  {{ tool = "{UNLISTED}", rate = {{ calls = 20, within_ms = 86_400_000 }} }},\n': "",
    f'"{UNLISTED}", ': "",
    f', "{UNLISTED}"': "",
    '"recurring"]\nmoney = { amount = "amount", currency_is = "EUR" }\nargs.id': (
        '"recurring"]\nargs.id'  # a tool that moves money needs a grant
    ),
    'args.amount = { type = "decimal", currency = "EUR", min = 0, max = 250_000, optional = true,'
    " default = 0 }": 'args.amount = { type = "string" }',
    '"paid_today", scope = "agent",': '"paid_today",',  # of all agents together
    "$proposal.amount > 200000 or $history.paid_today > 400000": rf"$tool == \"{LATER}\" and"
    " $proposal.amount > 100000 or $history.paid_today > 300000",
}


class Bank:
    """``says``: how it describes its tools. ``made``: the amount of each call that it made.

    ``folder`` has the shipped program with this bank for its upstream, and one tool not granted.
    """

    def __init__(self, folder: Path) -> None:
        self.says, self.folder, port = SAYS, folder, free_port()
        self.made: list[int] = []
        app = Server("bank", on_list_tools=self._listed, on_call_tool=self._called)
        server = uvicorn.Server(
            uvicorn.Config(app.streamable_http_app(), LOOPBACK, port, log_level="critical")
        )
        threading.Thread(target=server.run, daemon=True).start()
        folder.mkdir()
        (folder / "upstreams.toml").write_text(UPSTREAMS % port, "utf-8")
        for name, file in (("bank_assistant.toml", "bank.toml"), (POLICY, "policy.toml")):
            text = (SHIPPED / name).read_text("utf-8").partition("examples = ")[0]
            for old, new in (CHANGED | _pinned()).items():
                text = text.replace(old, new)
            (folder / file).write_text(text, "utf-8")

    async def _listed(self, *_: Any) -> ListToolsResult:
        tools = [Tool(name=n, description=self.says, input_schema=TAKES) for n in (PAY, UNLISTED)]
        return ListToolsResult(tools=tools)

    async def _called(self, _: Any, asked: CallToolRequestParams) -> CallToolResult:
        self.made.append(round(100 * float((asked.arguments or {})["amount"])))
        return CallToolResult(content=[TextContent(text="sent")])


def _pinned() -> dict[str, str]:
    """Its two tools as the program has them, each with the hash of what the bank says of it."""
    found = {}
    for tool in (PAY, UNLISTED):
        said = json.dumps([tool, SAYS, TAKES, None], separators=(",", ":")).encode()
        pin = hashlib.sha256(b"nanovm/pinned-tool/v1\0" + said).hexdigest()
        found[f"[tools.{tool}]"] = f'[tools.{tool}]\nat = "bank"\npinned = "{pin}"'
    return found
