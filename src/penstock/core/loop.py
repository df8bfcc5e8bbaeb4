"""The loop: observe → plan → act → write down. The same for a simulator and for Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from penstock.core.codec import ALWAYS_WRITTEN
from penstock.core.errors import EngineError, FrozenError, InputError, NotReady
from penstock.core.guards import Effect, Guards, is_action
from penstock.core.model import Change, Proposal, Snapshot
from penstock.core.ports import Engine, Policy
from penstock.core.quick import maker
from penstock.core.sanity import believable, fresh, unusable

Mode = Literal["advise", "act"]
Outcome = Literal["acted", "advised", "held", "frozen", "refused", "failed", "unusable"]
Fault = Literal["policy-raised", "proposal-unusable", "engine-refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the loop carries from one tick to the next; a plain JSON value as a whole.

    memory: what the policy remembers
    last_seen: time of the last snapshot that could be believed
    last_action: time of the last snapshot after which the engine was asked for anything
    """

    memory: Any = None
    last_seen: float | None = None
    last_action: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One tick: what was seen, what the policy said, what the guards made of it.

    targets: every pool's size with the raw figure, also where nothing changes
    effects: what each guard did on the way, in order
    notes: what else a person should know, such as ``frozen: …``
    applied: whether the engine was asked for the changes, and took them
    outcome: what became of it; the first of these that holds:
        ``frozen`` the kill switch was on, also where nothing was wanted
        ``acted`` the engine was asked
        ``refused`` the engine was asked and could not, or would not
        ``unusable`` the snapshot cannot be believed, so nothing was decided
        ``failed`` the policy raised, or proposed what is no proposal
        ``advised`` a change is wanted and nobody was asked for it
        ``held`` no change is wanted, or the guards left nothing to do
    bound: what kept it from being more: ``kill-switch``, ``engine``, ``sanity``, the last guard
        that changed a figure, ``sleep``, ``policy`` where that failed, or the policy's own term;
        empty where the proposal went through
    faults: what went wrong, whatever became of it: a pool outside its bounds is brought back
        though the policy raised
    why: the words of the kill switch or of the engine, where one of them bound
    """

    seen: Snapshot
    proposal: Proposal
    targets: Mapping[str, Change] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    notes: tuple[str, ...] = ()
    applied: bool = False
    outcome: Outcome = field(default="held", metadata=ALWAYS_WRITTEN)
    bound: str = ""
    faults: tuple[Fault, ...] = ()
    why: str = ""

    @property
    def changes(self) -> dict[str, Change]:
        """The targets that ask for anything."""
        return {p: c for p, c in self.targets.items() if is_action(c, self.seen, p)}

    def explain(self) -> str:
        """One line for a person: sizes, reason, raw figure, guards.

        ``executors 12→8: CPU 41 % of a 70 % target (raw 7.1); step-limit 7→8: at most −4 …``
        """
        parts = []
        changes = self.changes
        for pool, target in self.targets.items():
            arrow = f"→{target.slots}" if pool in changes else " stays"
            share = "" if target.cpu_share is None else f" at {target.cpu_share:.0%} CPU"
            parts.append(f"{pool} {target.before}{arrow}{share}")
        line = f"{', '.join(parts) or 'no change'}: {self.proposal.reason}"
        raws = [f"{c.raw:.2f}" for c in self.targets.values() if c.raw != c.before]
        if raws:
            line += f" (raw {', '.join(raws)})"
        for e in self.effects:
            line += f"; {e.guard} {e.before:g}→{e.after:g}: {e.why}"
        for note in self.notes:
            line += f"; {note}"
        return line


_state, _decision = maker(State), maker(Decision)  # made at every tick


def plan(policy: Policy, guards: Guards, seen: Snapshot, state: State) -> tuple[Decision, State]:
    """Decide, without doing anything. Never raises for what a policy or a metric did wrong."""
    seen, notes = believable(seen)
    doubt = unusable(seen, state.last_seen, guards.max_age)
    if doubt is not None:
        proposal = Proposal(reason=f"no change: {doubt.why}", term=doubt.term)
        decision = Decision(
            seen=seen, proposal=proposal, notes=notes, outcome="unusable", bound="sanity"
        )
        return decision, state
    if seen.queries:
        seen, old = fresh(seen, guards.max_age)
        notes += old
    if seen.facts:
        seen = _with_limits(seen, guards)
    memory = state.memory
    faults: tuple[Fault, ...] = ()
    left = guards.asleep(seen.time, state.last_action) if guards.sleep else None
    if left is not None:
        reason = f"no change: asleep, {left:.0f} s of the cool-down left"
        proposal = Proposal(reason=reason, term="sleep")
    else:
        try:
            proposal, memory = policy.decide(seen, memory)
        except Exception as error:  # a policy that raises must never harm the job
            faults = ("policy-raised",)
            proposal = _failed("the policy raised", error)
    try:
        targets, effects = guards.apply(proposal, seen, state.last_action)
        term = proposal.term
    except Exception as error:  # nor may one that proposes what is no proposal
        faults = ("proposal-unusable",)
        proposal = _failed("the policy's proposal is unusable,", error)
        targets, effects = guards.apply(proposal, seen, state.last_action)
        term = proposal.term
    decision = _decision(
        seen=seen,
        proposal=proposal,
        targets=targets,
        effects=effects,
        notes=notes,
        outcome="failed" if faults else "advised" if _acts(targets, seen) else "held",
        bound=effects[-1].guard if effects else term,
        faults=faults,
    )
    return decision, _state(memory=memory, last_seen=seen.time, last_action=state.last_action)


def _with_limits(seen: Snapshot, guards: Guards) -> Snapshot:
    """The snapshot with the limits that hold here; a replay may have others than the run had."""
    least, most = guards.minimum, guards.maximum
    if all(f.minimum == least and f.maximum == most for f in seen.facts.values()):
        return seen
    facts = {p: replace(f, minimum=least, maximum=most) for p, f in seen.facts.items()}
    return replace(seen, facts=facts)


def _failed(how: str, error: Exception) -> Proposal:
    """The proposal of a policy that failed: nothing, and what went wrong."""
    reason = f"no change: {how} {type(error).__name__}: {error}"
    return Proposal(reason=reason, term="policy")


def _acts(targets: Mapping[str, Change], seen: Snapshot) -> bool:
    for pool, c in targets.items():  # every tick goes through here
        if c.slots != c.before:
            return True
        if (c.cpu_share is not None or c.add_on or c.remove) and is_action(c, seen, pool):
            return True
    return False


class Loop:
    """Runs one policy with one set of guards on one engine.

    record: called with every decision and the state after it (the journal)
    frozen: says why nothing may be done at this moment, or ``None``; asked right before acting
    """

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        guards: Guards,
        *,
        mode: Mode = "advise",
        seed: int = 0,
        state: State | None = None,
        record: Callable[[Decision, State], None] | None = None,
        frozen: Callable[[], str | None] | None = None,
    ) -> None:
        if mode not in ("advise", "act"):
            raise InputError(f"mode {mode!r} must be 'advise' (only say) or 'act' (also do)")
        self.engine = engine
        self.policy = policy
        self.guards = guards
        self.mode = mode
        self.state = state if state is not None else State(memory=policy.start(seed))
        self._record = record
        self._frozen = frozen

    def tick(self) -> Decision:
        """Observe, plan and, in mode ``act`` unless frozen, apply.

        An engine that cannot do it leaves a note; the decision is kept all the same.
        """
        seen = self.engine.observe()
        decision, state = plan(self.policy, self.guards, seen, self.state)
        why = self._frozen() if self._frozen is not None else None
        if why is not None:
            decision = _frozen(decision, why, f"frozen: {why}")
        elif self.mode == "act" and decision.outcome != "held" and (changes := decision.changes):
            try:
                self.engine.apply(changes)
            except EngineError as error:
                decision = _refused(decision, error)
            else:
                decision = replace(decision, applied=True, outcome="acted")
                state = replace(state, last_action=seen.time)
        self.state = state
        if self._record is not None:
            self._record(decision, state)
        return decision

    def run(self, *, period: float, ticks: int) -> None:
        """Tick every ``period`` seconds until the engine has ended, at most ``ticks`` times.

        While nothing has been measured yet there is nothing to decide.
        """
        if not period > 0:
            raise InputError(f"period {period} s must be above 0")
        for _ in range(ticks):
            if not self.engine.advance(period):
                return
            try:
                self.tick()
            except NotReady:
                continue


def _frozen(decision: Decision, why: str, note: str) -> Decision:
    notes = (*decision.notes, note)
    return replace(decision, outcome="frozen", bound="kill-switch", why=why, notes=notes)


def _refused(decision: Decision, error: EngineError) -> Decision:
    note = f"not done: {error}"
    decision = replace(decision, faults=(*decision.faults, "engine-refused"))
    if isinstance(error, FrozenError):  # it was frozen while the policy thought
        return _frozen(decision, error.why, note)
    notes = (*decision.notes, note)
    return replace(decision, outcome="refused", bound="engine", why=str(error), notes=notes)
