"""The signer: signs what continues what it signed before. No web request may import it."""

from pipeline.evidence.signer.checkpoints import checkpoint as checkpoint
from pipeline.evidence.signer.checkpoints import remember as remember
from pipeline.evidence.signer.checkpoints import sign as sign
from pipeline.evidence.signer.keys import verifiers as verifiers
from pipeline.evidence.signer.rotation import rotate as rotate
from pipeline.evidence.signer.rounds import Rounds as Rounds
from pipeline.evidence.signer.rounds import due as due
