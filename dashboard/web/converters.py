"""What a run's code, a command and the form of an export look like in an address."""

from dashboard.runs.views import COMMANDS, DECISIONS


class RunCodeConverter:
    """A short code such as 7F3K-02, in either case."""

    regex = "[0-9A-Za-z]{4}-[0-9]{2}"

    def to_python(self, value: str) -> str:
        return value.upper()

    def to_url(self, value: str) -> str:
        return value


class CommandConverter:
    """A command for a run."""

    regex = "|".join((*COMMANDS, *DECISIONS))

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class ExportConverter:
    """How a list of envelopes is written."""

    regex = "ndjson|csv"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
