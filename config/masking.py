"""What log lines leave out: the secret in the address of a link, and the tokens of agents."""

import logging
import re

SECRET = re.compile(r"(/l/+|nvm1\.)[^/\s\"'?]{20,}", re.IGNORECASE)  # mistyped ones too


class WithoutSecrets(logging.Filter):
    """Writes dots for these secrets, in a line and in the traceback below it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every line; of one that has one, the text without the secret."""
        said = record.getMessage()
        if SECRET.search(said):
            record.msg, record.args = SECRET.sub(r"\1…", said), ()
        if record.exc_info:  # what is formatted already, no formatter writes again
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = SECRET.sub(r"\1…", text)
        return True
