"""The signer: signs what continues what it signed before. No web request may import it."""

from engine.evidence.signer.checkpoints import checkpoint as checkpoint
from engine.evidence.signer.checkpoints import remember as remember
from engine.evidence.signer.checkpoints import rotate as rotate
from engine.evidence.signer.checkpoints import sign as sign
from engine.evidence.signer.keys import verifiers as verifiers
from engine.evidence.signer.rounds import Rounds as Rounds
from engine.evidence.signer.rounds import due as due
