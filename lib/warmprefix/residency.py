"""Which processes are alive: a pool of four, each kept while it is leased or not yet idle for half an hour."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import count


@dataclass(frozen=True, slots=True)
class Lease:
    """One turn's hold on a process: its key, its own session id, and whether it has yet to hear anything."""

    key: str
    native: str
    cold: bool


@dataclass(slots=True)
class _Process:
    native: str
    used_at: float
    cold: bool = True
    lease: Lease | None = None


@dataclass
class Pool:
    """At most `size` processes, one a key (channel and binding), ended after more than `idle` seconds without a lease.

    >>> pool = Pool()
    >>> lease = pool.acquire("ch-backend/b-claude", at=0.0)
    >>> lease.cold, pool.release(lease, at=5.0), pool.acquire("ch-backend/b-claude", at=9.0).cold
    (True, [], False)

    Times are simulated seconds and never run backwards.
    """

    size: int = 4
    idle: float = 1800.0
    _alive: OrderedDict[str, _Process] = field(default_factory=OrderedDict)  # the idle ones least recently used first
    _waiting: deque[str] = field(default_factory=deque)
    _serial: "count[int]" = field(default_factory=lambda: count(1))

    def acquire(self, key: str, at: float) -> Lease | None:
        """A lease on the key's process, started if need be; `None` when the newcomer has to wait.

        It waits while the key's own process is leased, or while every process of a full pool is. `release` hands
        out the waiting leases in the order in which they were asked for.
        """
        self.expire(at)
        lease = self._grant(key, at)
        if lease is None:
            self._waiting.append(key)
        return lease

    def release(self, lease: Lease, at: float, failed: bool = False) -> list[Lease]:
        """End a lease, and return the leases that this makes possible for those who wait.

        A process whose first run failed stays cold: it may have heard nothing. A lease that has ended, by an earlier
        release or with its process, frees nothing.
        """
        process = self._alive.get(lease.key)
        if process and process.lease is lease:
            process.lease, process.used_at, process.cold = None, at, lease.cold and failed
            self._alive.move_to_end(lease.key)
        granted = []
        for _ in range(len(self._waiting)):
            key = self._waiting.popleft()
            next_lease = self._grant(key, at)
            if next_lease:
                granted.append(next_lease)
            else:
                self._waiting.append(key)
        return granted

    def evict(self, key: str) -> None:
        """End the key's process at once: an eviction or a crash; the next lease is cold."""
        self._alive.pop(key, None)

    def expire(self, at: float) -> None:
        """End every process that has been idle for more than `idle` seconds at `at`."""
        for key in [k for k, p in self._alive.items() if not p.lease and at - p.used_at > self.idle]:
            del self._alive[key]

    def _grant(self, key: str, at: float) -> Lease | None:
        process = self._alive.get(key)
        if process is None:
            if len(self._alive) >= self.size and not self._end_one_idle():
                return None
            process = self._alive[key] = _Process(f"native-{next(self._serial)}", at)
        elif process.lease:
            return None
        process.lease, process.used_at = Lease(key, process.native, process.cold), at
        return process.lease

    def _end_one_idle(self) -> bool:
        idle = next((k for k, p in self._alive.items() if not p.lease), None)
        if idle is not None:
            del self._alive[idle]
        return idle is not None
