"""The attacks that were fired: what was done, what answered, and the evidence."""

from django.db import models

from engine.models import Run, Workspace

HEADLINES = {
    "BLOCKED": "{injector} was refused",
    "IGNORED": "{injector} changed nothing",
    "DETECTED": "{injector} was found out",
    "ACCEPTED": "{injector} was taken",
    "": "{injector} was fired and is not judged yet",
}

CAREFUL_KEY = "careful"  # the careful agent's report, inside the ordinary agent's


class Attack(models.Model):
    """One attack on one run. ``verdict`` is empty between its firing and its judgement.

    Nothing in it is free text: what the visitor typed is in the vault under ``proposal_ref``.
    """

    id = models.UUIDField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="attacks")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="attacks")
    injector = models.CharField(max_length=24)
    params = models.JSONField(default=dict)
    proposal_ref = models.CharField(max_length=60, blank=True)
    state_before = models.CharField(max_length=40)
    state_after = models.CharField(max_length=40, blank=True)
    verdict = models.CharField(max_length=8, blank=True)  # BLOCKED, IGNORED, DETECTED, ACCEPTED
    rule = models.CharField(max_length=16, blank=True)
    where = models.CharField(max_length=160, blank=True)  # file.py:line function
    integrity = models.CharField(max_length=8, default="HELD")  # HELD, BREACHED
    evidence = models.JSONField(default=dict)
    control = models.JSONField(default=dict)  # what both baselines did under the same attack
    unguarded = models.JSONField(default=dict)  # the same attack on a copy without its guards
    created_ms = models.BigIntegerField()
    idempotency_key = models.CharField(max_length=80)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "idempotency_key"], name="attack_once")
        ]
        indexes = [models.Index(fields=["run", "-created_ms"], name="attack_of_run")]

    @property
    def when(self) -> str:
        """The state the run was in when it was attacked, as people see it."""
        from engine.queries.runs import label_of  # the commit path: not needed to start Django

        return label_of(self.state_before)

    @property
    def got_through(self) -> bool:
        """Whether the attack did what its attacker wanted, or worse."""
        return self.verdict == "ACCEPTED" or self.integrity == "BREACHED"

    @property
    def ordinary(self) -> dict[str, object]:
        """What the ordinary agent did; empty while that is not known."""
        return {name: value for name, value in self.control.items() if name != CAREFUL_KEY}

    @property
    def careful(self) -> dict[str, object]:
        """What the careful agent did; empty while that is not known, and for old attacks."""
        report: dict[str, object] = self.control.get(CAREFUL_KEY, {})
        return report

    @property
    def headline(self) -> str:
        """One sentence, from the verdict, the rule and the injector alone."""
        from pipeline.steps.reasons import REASONS, RULES

        rule = RULES.get(self.rule) or REASONS.get(self.rule)
        sentence = HEADLINES[self.verdict].format(injector=self.injector)
        return f"{sentence}: {rule.title}" if rule else sentence


class Plan(models.Model):
    """An attack that fires by itself when its run reaches a step; planned before the start.

    What the visitor typed is sealed in ``words`` under a key of the run's own, and is gone once
    the plan is done with; nothing else in it is free text.
    """

    id = models.UUIDField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="plans")
    injector = models.CharField(max_length=24)
    params = models.JSONField(default=dict)
    words_ref = models.CharField(max_length=60, blank=True)  # the name of the key
    words = models.BinaryField(null=True)
    step = models.SmallIntegerField()  # 1 to 7
    state = models.CharField(max_length=8)  # planned, due, firing, fired, missed
    at_step = models.SmallIntegerField(null=True)  # where the run was when it was fired
    attack = models.OneToOneField(Attack, on_delete=models.PROTECT, related_name="plan", null=True)
    why = models.CharField(max_length=400, blank=True)  # why it was not fired
    created_ms = models.BigIntegerField()
    changed_ms = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["state", "changed_ms"], name="plan_by_state")]
