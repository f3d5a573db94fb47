"""The signer: signs what continues what it signed before. No web request may import it."""

from pipeline.signer.checkpoints import checkpoint as checkpoint
from pipeline.signer.checkpoints import remember as remember
from pipeline.signer.checkpoints import sign as sign
from pipeline.signer.keys import verifiers as verifiers
from pipeline.signer.rotation import rotate as rotate
from pipeline.signer.rounds import Rounds as Rounds
from pipeline.signer.rounds import due as due
