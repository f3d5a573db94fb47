"""Contestants beside our runtime: a floor, and the peers as their documents use them.

A plugin as ``bench/durable.py`` is: each does the same seven steps, through ``tool``.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, TypedDict
from uuid import uuid4

import orjson
from psycopg.conninfo import conninfo_to_dict

from bench.kit import database
from bench.kit.group import Group, in_flight
from bench.paired import Base
from bench.seven import CONTEXT, STEPS

TOOLS = [f"t{i}" for i in range(STEPS)]


class Floor(Base):
    """The least that a durable step can do with what follows, in a bare loop on ``sqlite3``.

    It has: the transition, the capability, the condition and the budget, looked up before each
    effect; an intent stored before the effect and the result after it, in canonical bytes chained
    by SHA-256; a row of the run with its state and head; result n and intent n + 1 in one commit,
    eight for seven steps; WAL with synchronous=FULL. Where runs are in flight together, one
    committer stores what all of them wait for, and effects start after that commit.

    It has not: a first and a last envelope, a tree, signed checkpoints, a snapshot, stored bytes
    that are read and compared again, schemas of arguments, leases, deadlines, windows, an outbox,
    sealed personal data, recovery, or a layer between the loop and SQL.
    """

    durable = "intent and result of each step, chained: one commit a step"
    least = 2 * STEPS

    def setup(self) -> None:
        """An empty file with two tables."""
        self.file = sqlite3.connect(f"{self.d}/floor.sqlite3", isolation_level=None)
        for each in FLOOR_TABLES:
            self.file.execute(each)

    def commit(self, jobs: Sequence[tuple["FloorRun", list[Any]]]) -> list[None]:
        """One transaction for all jobs."""
        self.file.execute("BEGIN IMMEDIATE")
        self.file.executemany(INSERT, [line for _, lines in jobs for line in lines])
        rows = [(run.id, run.state, run.length, run.head) for run, _ in jobs]
        self.file.executemany(UPDATE, rows)
        self.file.execute("COMMIT")
        return [None] * len(jobs)

    def jobs(self) -> Iterator[tuple["FloorRun", list[Any]]]:
        """What each commit of a run stores; the effect that it owes comes after it."""
        run = FloorRun()
        lines = [run.intent()]
        for i in range(STEPS):
            yield run, lines
            lines = [run.result(self.tool(i))]
            if i + 1 < STEPS:
                lines.append(run.intent())
        yield run, lines

    def one(self) -> None:
        """One run by itself."""
        for job in self.jobs():
            self.commit([job])

    def run_many(self, secs: float) -> None:
        """With runs in flight, their commits are shared."""

        async def one(group: Group) -> None:
            for job in self.jobs():
                await group.commit(job)
            self.done(0)

        if self.conc == 1:
            super().run_many(secs)
        else:
            in_flight(self.conc, secs, self.commit, one)

    def rows(self) -> int:
        """The envelopes that are stored."""
        return int(self.file.execute("SELECT count(*) FROM line").fetchone()[0])


FLOOR_TABLES = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "CREATE TABLE line (seq INTEGER PRIMARY KEY, run TEXT, n INTEGER, hash BLOB, body BLOB)",
    "CREATE UNIQUE INDEX line_of ON line (run, n)",
    "CREATE TABLE run (run TEXT PRIMARY KEY, state TEXT, length INTEGER, head BLOB)",
)
INSERT = "INSERT INTO line (run, n, hash, body) VALUES (?, ?, ?, ?)"
UPDATE = (
    "INSERT INTO run VALUES (?, ?, ?, ?) ON CONFLICT (run) DO UPDATE"
    " SET state = excluded.state, length = excluded.length, head = excluded.head"
)
NEXT = {f"s{i}": f"s{i + 1}" for i in range(STEPS)}
GRANTED = frozenset(TOOLS)


class FloorRun:
    """A run of the floor: its state, its budget, the head of its chain."""

    __slots__ = ("budget", "head", "id", "length", "state", "to")

    def __init__(self) -> None:
        self.id, self.state, self.budget = uuid4().hex, "s0", 100
        self.length, self.head = 0, bytes(32)

    def intent(self) -> tuple[Any, ...]:
        """The next effect's, if the run may."""
        self.to, tool = NEXT[self.state], f"t{self.state[1:]}"
        met = CONTEXT["customer"]["tier"] == "gold" and CONTEXT["amount"] <= 500
        if tool not in GRANTED or not met or self.budget < 1:
            raise PermissionError(f"{tool} is refused.")
        self.budget -= 1
        key = f"{self.id}:{self.state}"
        return self.sealed(
            {"kind": "intent", "tool": tool, "to": self.to, "args": CONTEXT, "key": key}
        )

    def result(self, out: object) -> tuple[Any, ...]:
        """What came of the effect; the run is one state further."""
        self.state = self.to
        return self.sealed({"kind": "result", "out": out})

    def sealed(self, body: dict[str, object]) -> tuple[Any, ...]:
        """The next line of the chain."""
        n = self.length
        data = orjson.dumps({**body, "run": self.id, "n": n}, option=orjson.OPT_SORT_KEYS)
        self.head, self.length = sha256(self.head + data).digest(), n + 1
        return self.id, n, self.head, data


class NanoVM(Base):
    """llm-nano-vm, which keeps nothing: how quick steps are without a disk."""

    durable = "nothing, in memory"

    def setup(self) -> None:
        """Its program of seven tools."""
        from nano_vm import ExecutionVM, Program
        from nano_vm.adapters import MockLLMAdapter

        def tool_of(i: int) -> Any:
            return lambda **_: self.tool(i)

        steps = [{"id": f"s{i}", "type": "tool", "tool": f"t{i}"} for i in range(STEPS)]
        self.program = Program.from_dict({"name": "bench", "steps": steps})
        tools = {f"t{i}": tool_of(i) for i in range(STEPS)}
        self.vm = ExecutionVM(llm=MockLLMAdapter("nothing"), tools=tools)

    def run_many(self, secs: float) -> None:
        """One after the other, however many are asked for: nothing is waited for in a run."""
        asyncio.run(self._runs(time.perf_counter() + secs))

    async def _runs(self, end: float) -> None:
        while True:
            trace = await self.vm.run(self.program, context=dict(CONTEXT))
            if "SUCCESS" not in str(trace.status).upper():
                raise RuntimeError(f"A run of llm-nano-vm ended in {trace.status}.")
            self.done(0)
            if time.perf_counter() >= end:
                return


class Dbos(Base):
    """DBOS: a workflow of seven steps, on SQLite in WAL mode, which is not as it comes."""

    durable = "the result of each step"
    least = STEPS
    count = "SELECT count(*) FROM operation_outputs"

    def setup(self) -> None:
        """Its own schema, and the workflow."""
        from dbos import DBOS

        self.url = self.address()
        quiet = {"run_admin_server": False, "log_level": "CRITICAL"}
        DBOS(config={"name": "bench", "system_database_url": self.url, **quiet})

        def step_of(i: int) -> Any:
            def step(context: Any) -> Any:
                return self.tool(i)

            step.__name__ = step.__qualname__ = f"t{i}"
            return DBOS.step()(step)

        steps = [step_of(i) for i in range(STEPS)]

        def seven(context: Any) -> Any:
            return [step(context) for step in steps]

        self.workflow = DBOS.workflow()(seven)
        DBOS.launch()

    def address(self) -> str:
        """A file that is set to WAL before DBOS has it."""
        path = f"{self.d}/dbos.sqlite3"
        sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
        return f"sqlite:///{path}"

    def one(self) -> None:
        """One workflow."""
        self.workflow(dict(CONTEXT))

    def rows(self) -> int:
        """The results that are stored."""
        from sqlalchemy import create_engine, text

        url = self.url.replace("postgresql:", "postgresql+psycopg:")
        with create_engine(url).connect() as connection:
            found = connection.execute(text(self.count))
            return int(found.scalar_one())


class DbosPostgres(Dbos):
    """The same on PostgreSQL, as its documents advise."""

    count = "SELECT count(*) FROM dbos.operation_outputs"

    def address(self) -> str:
        """A database of its own; SQLAlchemy wants a socket's folder behind it."""
        at = conninfo_to_dict(database.made("dbos"))
        return f"postgresql://{at['user']}@/{at['dbname']}?host={at['host']}"


class State(TypedDict):
    """What LangGraph's nodes hand on."""

    context: Any
    out: Any


class LangGraph(Base):
    """LangGraph: a chain of seven nodes with SqliteSaver and durability="sync"."""

    durable = "a checkpoint after each step"
    least = STEPS

    def setup(self) -> None:
        """The compiled graph on its saver."""
        from langgraph.graph import END, START, StateGraph

        def node_of(i: int) -> Any:
            return lambda _state: {"out": self.tool(i)}

        graph = StateGraph(State)
        for i, (before, name) in enumerate(zip([START, *TOOLS], TOOLS, strict=False)):
            graph.add_node(name, node_of(i))
            graph.add_edge(before, name)
        graph.add_edge(TOOLS[-1], END)
        self.kept = self.saver()
        self.kept.setup()
        self.graph = graph.compile(checkpointer=self.kept)

    def saver(self) -> Any:
        """Its saver for SQLite, in WAL mode with synchronous=FULL."""
        from langgraph.checkpoint.sqlite import SqliteSaver

        path = f"{self.d}/langgraph.sqlite3"
        return SqliteSaver(sqlite3.connect(path, check_same_thread=False))

    def one(self) -> None:
        """One thread of the graph."""
        given = {"configurable": {"thread_id": uuid4().hex}}
        self.graph.invoke({"context": CONTEXT, "out": None}, given, durability="sync")

    def rows(self) -> int:
        """The checkpoints that are stored."""
        return sum(1 for _ in self.kept.list(None))


class LangGraphPostgres(LangGraph):
    """The same with PostgresSaver on a pool of connections."""

    def saver(self) -> Any:
        """Its saver for PostgreSQL."""
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
        from psycopg_pool import ConnectionPool

        kept = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        many = min(self.conc, 16)
        self.pool = ConnectionPool(
            database.made("langgraph"), kwargs=kept, min_size=1, max_size=many
        )
        made = PostgresSaver(self.pool)
        made.setup()
        return made


CONTESTANTS = {
    "floor": Floor,
    "llm_nano_vm": NanoVM,
    "dbos_wal": Dbos,
    "dbos_postgres": DbosPostgres,
    "langgraph_sqlite": LangGraph,
    "langgraph_postgres": LangGraphPostgres,
}
