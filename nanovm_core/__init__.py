"""The kernel: values in, values out; no clock, no dice, no disk.

How it decides: an event (``events``) → ``vm.ExecutionVM.feed``, or a shell's own runtime as in
``pipeline`` → ``fsm.transition`` → its handler in ``fsm`` (``steps``: results and proposals,
``requests``: people, ``flow``: what comes next) → ``gate`` where a call is judged → a Decision,
whose drafts ``envelope`` encodes. Programs and policies come in through ``loading`` and ``files``.

Where something new goes:

- an event: ``events``, its moves in ``lifecycle.TABLE``, its handler in ``fsm.HANDLERS``;
- a rule or a tool: no code, a row in the program's or the policy's file;
- a check of every call: ``gate.passage``, with ``gate.shortcut`` and ``gate.why``;
- a kind of step: ``program.KINDS``, its keys in ``loading.schema``, ``fsm.flow.enter``;
- a limit of a run: a field of ``budget.Limits``, asked for in ``budget.Accounts``;
- a refusal's code: a row in ``rules``, and an example in the tests that trips it.
"""
