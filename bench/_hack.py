import sys
from pathlib import Path as _P
exec(compile((_P(sys.argv[sys.argv.index("--plugin")+1]).parent/"durable.py").read_text() if False else open("/work/wt/core/bench/durable.py").read(),"durable","exec"),globals())
class Hacked(CONTESTANTS["nanovm_sqlite"]):
    def setup(self):
        super().setup(); exec(open("/tmp/w2/hack.py").read(),{})
    def rows(self): return 1
CONTESTANTS={"hack":Hacked}
