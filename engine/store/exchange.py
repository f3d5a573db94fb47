"""What a PostgreSQL server is asked: through libpq's pipeline mode, past the driver's cursors."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from psycopg import errors, generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.types.json import set_json_loads

PLANNED_MAX = 256  # statements whose plans a server keeps for a connection


@dataclass(slots=True, eq=False)
class Answer:
    """A statement, and what the server said to it."""

    exchange: "Exchange"
    key: tuple[Any, ...]
    values: Any
    formats: Any
    _result: PGresult | None = None

    @property
    def result(self) -> Any:
        """The driver's result, which is waited for."""
        if self._result is None:
            self.exchange.wait()
        return self._result

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        return self.result.command_tuples or 0

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Its rows."""
        types, result = self.exchange.types, self.result
        types.set_pgresult(result)
        return types.load_rows(0, result.ntuples, tuple)


class Exchange:
    """What a connection asks its server next, all at once and in this order: its ``exchange``."""

    def __init__(self, connection: Any) -> None:
        self.asked: list[Answer] = []  # nothing of it is sent yet
        self.types, self._connection = Transformer(connection), connection
        connection.exchange = self
        set_json_loads(bytes.decode, connection)  # type: ignore[arg-type] # Django parses it
        self._plans, self._numbers = dict[object, bytes](), count()
        self._has_failed = False  # some of _plans may not be there

    def execute(self, statement: str, params: Sequence[object] = ()) -> Answer:
        """Ask with what is waited for next."""
        values = self.types.dump_sequence(params, [PyFormat.AUTO] * len(params))
        key = (statement, self.types.types or ())
        self.asked.append(Answer(self, key, values, self.types.formats))
        return self.asked[-1]

    def commit(self) -> None:
        """Send what is left with the end of the transaction; raises as ``wait``."""
        if [each.key[0] for each in self.asked] == ["BEGIN"]:
            self.asked.clear()  # there is nothing to commit
        elif self.execute("COMMIT").result.command_status != b"COMMIT":
            raise errors.InFailedSqlTransaction("A statement failed, so the server rolled back.")

    def wait(self) -> None:
        """Send all that was asked, and receive the answers.

        Raises:
            psycopg.Error: of the first statement that failed; none behind it was run. Where the
                connection broke it is closed, and what the server did is unknown.
        """
        asked, self.asked = self.asked, []
        if not asked:
            return
        server = self._connection.pgconn
        if not self._connection.autocommit and server.transaction_status == TransactionStatus.IDLE:
            self.execute("BEGIN")  # of Django's transaction, as the driver's cursors do
            asked.insert(0, self.asked.pop())
        try:
            server.enter_pipeline_mode()
            sent = [each for one in asked for each in self._send(server, one)]
            server.pipeline_sync()
            results = self._connection.wait(_received(server))
            server.exit_pipeline_mode()
        except BaseException:
            self._connection.close()
            raise
        for answer, result in zip(sent, results, strict=True):
            if result.status == ExecStatus.FATAL_ERROR:
                self._has_failed = True
                raise errors.error_from_result(result)
            answer._result = result

    def _send(self, server: Any, each: Answer) -> list[Answer]:
        """Send a statement, planned where it is new; the same answer for each of its results."""
        sent = [each]
        if self._has_failed or len(self._plans) >= PLANNED_MAX:
            self._plans, self._has_failed = {}, False
            server.send_query_params(b"DEALLOCATE ALL", None)
            sent.append(each)
        name = self._plans.get(each.key)
        if name is None:
            self._plans[each.key] = name = b"nanovm_%d" % next(self._numbers)
            server.send_prepare(name, _numbered(each.key[0]), each.key[1])
            sent.append(each)
        server.send_query_prepared(name, each.values, each.formats, result_format=1)
        return sent


def _received(server: Any) -> Generator[Any, Any, list[PGresult]]:
    """A result for each statement that was sent, for ``Connection.wait``."""
    yield from generators.send(server)
    results: list[PGresult] = []
    while True:
        [found] = yield from generators.fetch_many(server)
        if found.status == ExecStatus.PIPELINE_SYNC:
            return results
        results.append(found)


@lru_cache(maxsize=512)
def _numbered(statement: str) -> bytes:
    """The statement with libpq's placeholders."""
    first, *rest = statement.split("%s")
    return (first + "".join(f"${at}{part}" for at, part in enumerate(rest, 1))).encode()
