"""What a run's code and a command look like in an address."""

from dashboard.views.run import COMMANDS


class RunCodeConverter:
    """A short code such as 7F3K-02, in either case."""

    regex = "[0-9A-Za-z]{4}-[0-9]{2}"

    def to_python(self, value: str) -> str:
        return value.upper()

    def to_url(self, value: str) -> str:
        return value


class CommandConverter:
    """A command for a run."""

    regex = "|".join(COMMANDS)

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
