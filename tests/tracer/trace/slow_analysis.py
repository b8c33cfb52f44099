"""The analysis again, one event at a time and without numpy: what the quick one is held against."""

from collections import Counter, defaultdict

from temper_plugin_tracer.trace.analysis.parties import IDLE, PartyKind, party_code
from temper_plugin_tracer.trace.events import PREEMPTED, Kind

DEPTH = 6


class SlowThread:
    def __init__(self):
        self.state = "unseen"
        self.since = 0
        self.cpu = -1
        self.waker = None
        self.ran_on = None
        self.parties = Counter()
        self.is_throttled = False
        self.chain = []
        self.sums = Counter()
        self.slices = []
        self.waits = []


class SlowAnalysis:
    def __init__(self, siblings=None, outside=lambda *_: False, recorded=None):
        self.threads = defaultdict(SlowThread)
        self.on_cpu = {}
        self.interrupt, self.softirq = {}, {}
        self.siblings = siblings or {}
        self.outside = outside
        self.recorded = recorded
        self.blockers, self.sharers = Counter(), Counter()
        self.edges = defaultdict(list)
        self.slow = []
        self.now = None

    def party(self, cpu):
        if cpu in self.interrupt:
            return party_code(PartyKind.INTERRUPT, self.interrupt[cpu])
        if cpu in self.softirq:
            return party_code(PartyKind.SOFTIRQ, self.softirq[cpu])
        if cpu not in self.on_cpu:
            return party_code(PartyKind.UNKNOWN)
        return self.on_cpu[cpu] or IDLE

    def pass_time(self, now):
        begin, self.now = (now if self.now is None else self.now), now
        ns = now - begin
        if not ns:
            return
        for tid, thread in self.threads.items():
            if thread.state == "waiting":
                self.wait(tid, thread, ns)
            elif thread.state == "running":
                thread.sums["run_ns"] += ns
                thread.sums["outside_ns"] += ns if self.outside(tid, thread.cpu) else 0
                for other in self.siblings.get(thread.cpu, ()):
                    party = self.party(other)
                    self.sharers[tid, party] += ns
                    if party not in {IDLE, party_code(PartyKind.UNKNOWN)}:
                        thread.sums["shared_ns"] += ns

    def wait(self, tid, thread, ns):
        thread.sums["wait_ns"] += ns
        throttled = party_code(PartyKind.THROTTLED)
        party = throttled if thread.is_throttled else self.party(thread.cpu)
        self.blockers[tid, party] += ns
        thread.parties[party] += ns

    def add(self, event):  # noqa: C901 - one branch an event
        kind, cpu, now = int(event["kind"]), int(event["cpu"]), int(event["ns"])
        prev, following = int(event["prev"]), int(event["next"])
        self.pass_time(now)
        if kind == Kind.SWITCH:
            self.interrupt.pop(cpu, None)
            self.softirq.pop(cpu, None)
            had = self.on_cpu.get(cpu, -1)
            self.on_cpu[cpu] = following
            if had > 0 and had != prev:
                self.threads[had].sums["broken"] += 1
                self.enter(had, "unseen", now, cpu)
            if prev:
                self.leave(prev, cpu, now, int(event["state"]), bool(event["flags"] & 1))
            if following:
                self.take(following, cpu, now)
        elif kind == Kind.WAKING and following:
            waker = 0 if event["flags"] & 1 else prev
            self.wake(following, waker, int(event["target"]), now)
        elif kind == Kind.MIGRATION and following:
            self.move(following, prev, int(event["target"]), now)
        elif kind == Kind.INTERRUPT_BEGINS:
            self.interrupt[cpu] = following
        elif kind == Kind.INTERRUPT_ENDS:
            self.interrupt.pop(cpu, None)
        elif kind == Kind.SOFTIRQ_BEGINS:
            self.softirq[cpu] = following
        elif kind == Kind.SOFTIRQ_ENDS:
            self.softirq.pop(cpu, None)

    def move(self, tid, source, target, now):
        if self.recorded is not None and target not in self.recorded:
            self.enter(tid, "unseen", now, target)
        elif self.recorded is not None and source not in self.recorded:
            self.enter(tid, "waiting", now, target)
        elif self.threads[tid].state == "waiting":
            self.threads[tid].cpu = target

    def enter(self, tid, state, now, cpu, waker=None):
        thread = self.threads[tid]
        thread.state, thread.since, thread.cpu, thread.waker = state, now, cpu, waker
        thread.parties = Counter()
        thread.is_throttled = False

    def leave(self, tid, cpu, now, state, is_throttled):
        thread = self.threads[tid]
        if thread.state == "running" and thread.cpu == cpu:
            thread.slices.append(now - thread.since)
        elif thread.state != "unseen":
            thread.sums["broken"] += 1
        is_runnable = state in {0, PREEMPTED}
        thread.sums["preemptions"] += is_runnable
        self.enter(tid, "waiting" if is_runnable else "blocked", now, cpu)
        thread.is_throttled = is_throttled and is_runnable

    def take(self, tid, cpu, now):
        thread = self.threads[tid]
        if thread.state == "waiting":
            self.end_wait(tid, thread, cpu, now)
        thread.sums["broken"] += thread.state == "running"
        thread.sums["unwoken"] += thread.state == "blocked"
        thread.sums["migrations"] += thread.ran_on not in {None, cpu}
        thread.ran_on = cpu
        self.enter(tid, "running", now, cpu)

    def end_wait(self, tid, thread, cpu, now):
        ns = now - thread.since
        thread.waits.append(ns)
        if thread.waker is None:
            return
        thread.chain[0][2] = ns
        self.edges[thread.waker, tid].append(ns)
        parties = sorted(thread.parties.items(), key=lambda item: (-item[1], item[0]))
        chain = [tuple(link) for link in thread.chain]
        self.slow.append((-ns, thread.since, tid, cpu, tuple(parties), tuple(chain)))

    def wake(self, tid, waker, target, now):
        thread = self.threads[tid]
        if thread.state == "waiting":
            thread.cpu = target
        if thread.state in {"running", "waiting"}:
            thread.sums["idle_wakeups"] += 1
            return
        thread.sums["wakeups"] += 1
        behind = self.threads[waker].chain if waker else []
        links = [list(link) for link in behind]
        thread.chain = [[waker, now, -1], *links][:DEPTH]
        self.enter(tid, "waiting", now, target, waker)
