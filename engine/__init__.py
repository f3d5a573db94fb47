"""The engine: it runs any program, durably, and keeps the evidence of each decision.

How a step happens. An **event** (an answer, a proposal, a person's command) comes to
``runtime.api``. In one transaction the run and its log are locked, every stored byte of the run is
compared with what its envelopes seal, the kernel decides, and the decision's envelopes, the run's
new value, budgets and secrets are stored together: all of it or nothing. What the decision owes to
the outside is an **effect** whose intent is sealed by then. After the commit a worker takes the run
under a lease, has the application's adapter do the effect under the key that was sealed, and brings
the answer back as the next event. It begins the next effect in the same commit.

Why a crash costs nothing. Before the commit nothing happened. After it the intent says what is
owed: any worker does it again under the same key, so the far side does it once. A lost message is
found by the sweep; a lost worker by the end of its lease. Where it cannot be known whether an
effect happened, a person decides, and its budget stays reserved until then.

Why nobody need be trusted. A row repeats what envelopes seal and is never believed without them. An
envelope names the hash of the one before it in its chain, of which each run, the log itself and
each agent has one. All of a workspace lie in one Merkle tree. The signer, a process of its own,
signs only a tree that extends the one it signed before.

What is not here: programs, tools, tables and personal data of an application. ``application`` is
the port through which they come; ``runtime.api`` and ``worker.drive`` are the places to begin
reading.
"""
