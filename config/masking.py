"""What log lines leave out: the secret in the address of a link."""

import logging
import re

SECRET = re.compile(r"(/l/+)[^/\s\"'?]{20,}", re.IGNORECASE)  # mistyped ones too


class WithoutSecrets(logging.Filter):
    """Writes dots for the secrets of links, in a line and in the traceback below it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every line; of one with such an address, the text without the secret."""
        said = record.getMessage()
        if SECRET.search(said):
            record.msg, record.args = SECRET.sub(r"\1…", said), ()
        if record.exc_info:  # what is formatted already, no formatter writes again
            text = logging.Formatter().formatException(record.exc_info)
            record.exc_text = SECRET.sub(r"\1…", text)
        return True
