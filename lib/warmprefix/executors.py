"""Where jobs run: in threads here or on the workers of a Dask cluster, both through `concurrent.futures`."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import Any

from warmprefix.errors import InputError

PATIENCE = 5.0  # seconds until a scheduler that does not answer, or has no worker, counts as out of reach
_BEAT = 1.0  # seconds between two looks at a cluster that has finished nothing meanwhile


class Cluster(Executor):
    """The workers of a Dask scheduler as an executor, to be used in a `with` block.

    A job whose worker dies is given to another one; when that happens to it again and again (the scheduler's
    `allowed-failures`), it alone fails. Needs the extra `cluster`. Raises `InputError`, after at most about twice
    `patience` seconds, where no scheduler answers at `address` or it has no worker.
    """

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        try:
            import distributed
        except ImportError:
            raise self._unusable(
                address, "the package distributed is missing", "pip install 'warmprefix[cluster]'"
            ) from None
        self.address, self._patience = address, patience
        # What goes wrong on the way is said once, as an InputError or in a run's own row.
        self._loggers = {name: logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado")}
        self._levels = {name: logger.level for name, logger in self._loggers.items()}
        for logger in self._loggers.values():
            logger.setLevel(logging.CRITICAL)
        try:
            # The client itself never gives up on a port where something else answers.
            with ThreadPoolExecutor(1) as thread:  # since this thread may run a loop already, as a notebook's does
                thread.submit(asyncio.run, _answer(address, patience)).result()
            self._client = distributed.Client(address, timeout=patience, set_as_default=False)
        except InputError:
            self._speak_again()
            raise
        except Exception as error:
            self._speak_again()
            problem = str(error) if isinstance(error, ValueError | TypeError) else "no Dask scheduler answers"
            raise self._unusable(address, problem, "check the address, as in tcp://host:8786") from None
        # Two equal jobs are two jobs: the second may be another try.
        self._executor = self._client.get_executor(pure=False)

    @staticmethod
    def _unusable(address: str, problem: str, remedy: str) -> InputError:
        return InputError("", f"scheduler {address}", problem, remedy)

    def _speak_again(self) -> None:
        for name, logger in self._loggers.items():
            logger.setLevel(self._levels[name])

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Have a worker call `fn`, which takes and returns what can be pickled."""
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which goes on without us."""
        self._client.close(timeout=self._patience)
        self._speak_again()

    def has_workers(self) -> bool:
        """Whether any worker is there; raises `InputError` where the scheduler is not."""
        try:
            if self._client.status == "running":
                return bool(self._client.nthreads())
        except OSError:
            pass
        raise self._unusable(self.address, "went away", "start it again; what is finished is kept")

    def completed(self, futures: Iterable["Future[Any]"]) -> Iterator["Future[Any]"]:
        """Each future once it is done; raises `InputError` once the scheduler or its last worker stays away."""
        waiting, alone = set(futures), 0.0
        while waiting:
            done, waiting = wait(waiting, timeout=_BEAT, return_when=FIRST_COMPLETED)
            if waiting or any(future.cancelled() for future in done):  # a client that is cut off cancels all of them
                alone = 0.0 if self.has_workers() else alone + _BEAT
            if alone > self._patience:
                raise self._unusable(self.address, "has no worker left", "start one; what is finished is kept")
            yield from done


async def _answer(address: str, patience: float) -> None:
    """Return once the scheduler at `address` has a worker."""
    from distributed.core import rpc
    from distributed.security import Security

    options = Security().get_connection_args("client")
    async with asyncio.timeout(patience), rpc(address, timeout=patience, connection_args=options) as scheduler:
        who = await scheduler.identity()
    if who.get("type") != "Scheduler":
        raise Cluster._unusable(address, f"a Dask {who.get('type')} answers", "name the scheduler's address")
    for _ in range(max(1, round(patience / _BEAT))):
        async with asyncio.timeout(patience), rpc(address, timeout=patience, connection_args=options) as scheduler:
            if await scheduler.ncores():
                return
        await asyncio.sleep(_BEAT)
    raise Cluster._unusable(address, "has no worker", f"start one: dask worker {address}")
