"""`init_process_group("hccl")`: collectives between processes of one machine, each with devices.

The transport is gloo's. A tensor of the device is sent from where it lies, since its memory is the
host's; collectives have ended when their call returns.
"""

from __future__ import annotations

import datetime
import importlib
from typing import Any

import torch
from torch import distributed

__all__ = ["register_hccl"]

# One tensor for all ranks may have any shape, (1, all) in SyncBatchNorm; gloo cuts its first dim.
_FLAT = (
    "_allgather_base",
    "_reduce_scatter_base",
    "allgather_into_tensor_coalesced",
    "reduce_scatter_tensor_coalesced",
    # What newer releases of PyTorch call them.
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
)
_COLLECTIVES = (
    "allreduce",
    "allreduce_coalesced",
    "broadcast",
    "allgather",
    "allgather_coalesced",
    "reduce_scatter",
    "reduce",
    "gather",
    "scatter",
    "alltoall",
    "alltoall_base",
    "all_to_all_single",
    *_FLAT,
)


def register_hccl() -> None:
    """Make `hccl` a backend of `torch.distributed`, the one for tensors of `npu`."""
    if not distributed.is_available() or "hccl" in distributed.Backend.backend_list:
        return
    distributed.Backend.register_backend("hccl", _create, devices=["npu"])


def _create(
    store: Any, rank: int, size: int, timeout: datetime.timedelta
) -> distributed.ProcessGroup:
    group: distributed.ProcessGroup = _group_class()(store, rank, size, timeout)
    return group


def _seen_by_the_host(values: Any) -> Any:
    def see(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device.type != "npu":
            return tensor
        seen: torch.Tensor = torch.ops.opkit_npu.as_cpu(tensor.detach())
        return seen

    return torch.utils._pytree.tree_map_only(torch.Tensor, see, values)


def _c10d() -> Any:
    """PyTorch's own names below torch.distributed; its stubs lack some of them."""
    return importlib.import_module("torch._C._distributed_c10d")


def _done(result: Any) -> Any:
    """Work that has ended with a result on the device."""
    leaves = torch.utils._pytree.tree_leaves(result)
    devices = sorted(
        {str(t.device) for t in leaves if isinstance(t, torch.Tensor) and not t.is_cpu}
    )
    future: torch.futures.Future[Any] = torch.futures.Future(
        devices=[torch.device(name) for name in devices] or None
    )
    future.set_result(result)
    return _c10d()._create_work_from_future(future)


def _group_class() -> Any:
    """Return the class of groups; made at the first use, as torch.distributed may be absent."""

    class HcclGroup(distributed.ProcessGroup):
        """A gloo group that takes tensors of the device."""

        def __init__(self, store: Any, rank: int, size: int, timeout: datetime.timedelta) -> None:
            base: Any = super()
            base.__init__(rank, size)
            gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)
            kind = distributed.ProcessGroup.BackendType.GLOO
            self._gloo: Any = distributed.ProcessGroup(store, rank, size)
            # The name of a group lives in its backends: device meshes look groups up by it.
            for group in (self, self._gloo):
                group._set_default_backend(kind)
                group._register_backend(torch.device("cpu"), kind, gloo)

        def barrier(self, opts: Any = None) -> Any:
            self._gloo.barrier(distributed.BarrierOptions() if opts is None else opts).wait()
            return _done([])

        def getBackendName(self) -> str:
            return "hccl"

    class Transfer(distributed.Work):
        """A send or receive under way: it goes from or to where the tensor lies."""

        def __init__(self, work: Any, tensors: Any) -> None:
            super().__init__()
            self._work = work
            self._tensors = tensors

        def wait(self, *timeout: Any) -> bool:
            return bool(self._work.wait(*timeout))

        def is_completed(self) -> bool:
            return bool(self._work.is_completed())

        def is_success(self) -> bool:
            return bool(self._work.is_success())

        def exception(self) -> Any:
            return self._work.exception()

        def source_rank(self) -> int:
            return int(self._work._source_rank())

        _source_rank = source_rank

        def result(self) -> Any:
            return self._tensors

    def transfer(name: str) -> Any:
        def call(self: Any, tensors: Any, *arguments: Any, **named: Any) -> Any:
            work = getattr(self._gloo, name)(_seen_by_the_host(tensors), *arguments, **named)
            return Transfer(work, tensors)

        return call

    for name in ("send", "recv", "recv_anysource"):
        setattr(HcclGroup, name, transfer(name))

    def collective(name: str) -> Any:
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            seen = _seen_by_the_host((arguments, named))
            if name in _FLAT:
                seen = torch.utils._pytree.tree_map_only(
                    torch.Tensor, lambda tensor: tensor.view(-1), seen
                )
            getattr(self._gloo, name)(*seen[0], **seen[1]).wait()
            result = arguments[0]
            return _done([result] if isinstance(result, torch.Tensor) else result)

        return call

    for name in _COLLECTIVES:
        if hasattr(distributed.ProcessGroup, name):
            setattr(HcclGroup, name, collective(name))
    return HcclGroup
