"""The pipeline's migrations, and behind them the next release's."""

from pathlib import Path

from pipeline import migrations

HERE = Path(__file__).parent
__path__ = [*migrations.__path__, str(HERE)]
LAST = max(each.stem for each in Path(migrations.__path__[0]).glob("[0-9]*.py"))
