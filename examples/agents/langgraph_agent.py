"""A LangGraph agent whose refunds ask the gate first. Its model is a script, which needs no key."""

import os

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime, tools_condition

from nanovm_client import Gate

gate = Gate(os.environ["GATE_URL"], os.environ["GATE_TOKEN"])


@tool
@gate.guarded("refund.issue", on_error=str)
def refund(order: str, amount: str, reason: str, runtime: ToolRuntime) -> str:
    """Refund an order."""  # the runtime has the tool call's id: asked again, it is one refund
    return f"Refunded {amount} for order {order}."


asked = {"order": "1001", "amount": os.getenv("AMOUNT", "12.50"), "reason": "late"}
calls = AIMessage("", tool_calls=[{"name": "refund", "args": asked, "id": os.urandom(9).hex()}])
model = GenericFakeChatModel(messages=iter([calls, "That is all."]))
graph = StateGraph(MessagesState).add_node("tools", ToolNode([refund])).add_edge("tools", "model")
graph.add_node("model", lambda now: {"messages": model.invoke(now["messages"])})
app = graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).compile()
print(app.invoke({"messages": "Refund order 1001."})["messages"][2].content)
