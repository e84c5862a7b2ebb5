"""Every class of finding: its id, which tool reports it, what it means, and a smallest example."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from opkit.errors import FAULT_IDS, UsageError

__all__ = ["CLASSES", "TOOLS", "FindingClass", "class_of_fault", "find_class", "known_class"]

TOOLS = (
    *("memcheck", "initcheck", "racecheck", "cachecheck", "synccheck", "leakcheck"),
    *("queuecheck", "apicheck", "notecheck"),
)

_EXAMPLES = Path(__file__).parent / "examples"


@dataclass(frozen=True)
class FindingClass:
    """One kind of bug."""

    id: str
    """As reports, suppressions and `opkit explain` name it."""
    tool: str
    """One of `TOOLS`."""
    title: str
    """What is wrong, in a few words."""
    explanation: str
    """What happens on the chip, and what opkit looks at."""
    needs_operator: bool = False
    """Whether only a project's operators show it: a launch alone does not say what is an output."""

    @property
    def fault(self) -> str:
        """The fault category that ends a launch this way; empty where the launch goes on."""
        return next((name for name, id in FAULT_IDS.items() if id == self.id), "")

    @property
    def is_note(self) -> bool:
        """Whether it is no bug by itself: shown, and never a reason to fail."""
        return self.tool == "notecheck"

    @property
    def is_program(self) -> bool:
        """Whether the example is a whole program, for `opkit cc`, and not a kernel."""
        return (_EXAMPLES / f"{self.id}.asc").exists()

    def example(self) -> str:
        """Return the source of a smallest kernel or program with the bug; empty without one."""
        return _read(self.id)

    def fixed_example(self) -> str:
        """Return the source of the same without the bug; empty where there is none."""
        return _read(f"{self.id}.fixed")


def _read(stem: str) -> str:
    for suffix in (".cpp", ".asc"):
        path = _EXAMPLES / f"{stem}{suffix}"
        if path.exists():
            return path.read_text(encoding="utf-8")
    return ""


_PIPES = (
    "The pipes of a core (S, V, MTE2, MTE3, ...) run at the same time; only SetFlag and WaitFlag, "
    "PipeBarrier<PIPE_ALL> and queues order them. The emulator executes in program order, so the "
    "result here is right, but on the chip it need not be. With --no-auto-sync vector instructions "
    "that depend on each other need PipeBarrier<PIPE_V> between them, too."
)
_CORES = (
    "Blocks run at the same time and in any order. Only SyncAll and signals between cores order "
    "what they do to global memory; atomic writes may meet."
)
_CACHE = (
    "GetValue and SetValue of global memory go through a data cache that each core has for itself, "
    "in lines of 64 bytes; copies do not. The emulator has no caches, so the result here is right, "
    "but on the chip it need not be."
)
_INIT = (
    "Local memory holds what the kernel before left there, outputs and workspaces what was in "
    "memory. Each byte is followed from its first write; padding behind the last written byte of a "
    "data block does not count, except for reductions and scalar reads."
)

CLASSES: tuple[FindingClass, ...] = (
    FindingClass("RACE-RAW", "racecheck", "read before the write it needs has finished", _PIPES),
    FindingClass(
        "RACE-WAR", "racecheck", "write over bytes that another pipe may still read", _PIPES
    ),
    FindingClass("RACE-WAW", "racecheck", "two pipes write the same bytes in no order", _PIPES),
    FindingClass(
        "RACE-CORES-READ", "racecheck", "a block reads what another writes, in no order", _CORES
    ),
    FindingClass(
        "RACE-CORES-WRITE", "racecheck", "two blocks write the same bytes, in no order", _CORES
    ),
    FindingClass(
        "CACHE-LOST-WRITE",
        "cachecheck",
        "a cache line that several write, and one as a whole",
        f"{_CACHE} A line that SetValue has changed is written back as a whole, at some time, by "
        "DataCacheCleanAndInvalid or at the end: what others have written to it since it was "
        "loaded is undone.",
    ),
    FindingClass(
        "CACHE-UNWRITTEN",
        "cachecheck",
        "a read of what SetValue has left in a data cache",
        f"{_CACHE} Until DataCacheCleanAndInvalid a copy, or another core, reads what was in "
        "global memory before.",
    ),
    FindingClass(
        "CACHE-STALE-READ",
        "cachecheck",
        "a GetValue of a line that was loaded before others wrote it",
        f"{_CACHE} A line stays there once it was loaded, and GetValue takes it from there. "
        "Looked at for the 512 lines or more that were loaded last.",
    ),
    FindingClass("INIT-READ", "initcheck", "an instruction reads bytes never written", _INIT),
    FindingClass("INIT-COPY-OUT", "initcheck", "a copy writes out bytes never written", _INIT),
    FindingClass(
        "INIT-OUTPUT",
        "initcheck",
        "an output, or a part of it, is never written",
        "The operator was run on outputs of zeros and of something else, and what they held before "
        "is still there. A kernel that is not finished, a tile that nothing copies out, or more "
        "elements inferred than computed. Looked at in projects, where outputs have zeros.",
        needs_operator=True,
    ),
    FindingClass(
        "LEAK-TENSOR",
        "leakcheck",
        "a queue's tensor is not given back",
        "Every AllocTensor needs a FreeTensor: a queue has few buffers, and the next AllocTensor "
        "waits for one. Looked at when a block ends.",
    ),
    FindingClass(
        "LEAK-EVENT",
        "leakcheck",
        "an allocated event id is not released",
        "A pair of pipes has eight event ids, shared with the queues. AllocEventID takes one until "
        "ReleaseEventID. Looked at when a block ends.",
    ),
    FindingClass(
        "SYNC-UNPAIRED",
        "synccheck",
        "a flag is set and never waited for",
        "The flag stays set when the kernel ends, and the next kernel's WaitFlag on this core "
        "passes before its own SetFlag. Queues are exempt: they look after their own flags.",
    ),
    FindingClass(
        "SYNC-DUPLICATE",
        "synccheck",
        "an event is signalled again before the wait",
        "A flag is one bit: the second SetFlag changes nothing, and the second WaitFlag hangs.",
    ),
    FindingClass(
        "SYNC-EVENT-ID",
        "synccheck",
        "the kernel and a queue use one event id at the same time",
        "Queues take event ids of the same pair of pipes. A number of the kernel's own choice may "
        "be in use: then its WaitFlag passes at the queue's signal, or the queue's at its.",
    ),
    FindingClass(
        "SYNC-CROSS-UNPAIRED",
        "synccheck",
        "a flag between cores is set and never waited for",
        "CrossCoreSetFlag counts up a flag of other cores and CrossCoreWaitFlag counts it down. "
        "What is left when the kernel ends lets a wait of the next kernel pass too early.",
    ),
    FindingClass(
        "SYNC-DEADLOCK",
        "synccheck",
        "a wait that nothing will end",
        "A WaitFlag without a SetFlag before it, cores that wait for each other, or SyncAll and "
        "its like in a launch of more blocks than run at a time: the last ones never start. "
        "On the chip the launch hangs; here it ends and says who waits for what.",
    ),
    FindingClass(
        "MEM-BOUNDS",
        "memcheck",
        "bytes outside a tensor, a buffer or a memory",
        "Each operand is checked against its own buffer, its memory's size on this chip, and in "
        "global memory against the tensors of the launch, for lanes that are really touched.",
    ),
    FindingClass(
        "MEM-OVERFULL",
        "memcheck",
        "a buffer placed behind the end of a local memory",
        "InitBuffer counts addresses and looks at no size. A kernel for several types may place a "
        "buffer there that one of them never touches, and runs; whatever does touch it overwrites "
        "other bytes or ends the launch, and is MEM-BOUNDS here.",
    ),
    FindingClass(
        "MEM-SCRATCH",
        "memcheck",
        "a read of UB that an instruction has used as scratch",
        "Select by a mask in UB (its modes 1 and 2; on the 310P Brcb, too) needs 8 KiB of UB for "
        "itself. Where they lie the page does not say; public reports name the end of UB. What a "
        "kernel has written there is taken as lost with such a call, until it is written again; "
        "operands of the call itself may not lie there.",
    ),
    FindingClass(
        "MEM-PADDING",
        "memcheck",
        "a read of what only rounds a tensor up to 32 bytes",
        "Device memory comes in blocks of 32 bytes, so a copy of whole blocks may read beyond a "
        "tensor's last element, and finds anything there. Many kernels do that and leave the "
        "surplus elements out of their results. Reported with --padding only.",
    ),
    FindingClass(
        "MEM-RAW",
        "memcheck",
        "an output changed through a raw pointer",
        "Bytes of an output changed that no instruction wrote: the kernel stored through a plain "
        "pointer. Nothing checks or times what computed them, and what the host's processor does "
        "in a moment is scalar code on the chip, element by element, or does not compile. Looked "
        "at in outputs of operators, and in the device memory of programs; SetValue and the "
        "references that GlobalTensor gives count as instructions. --allow-raw-writes takes the "
        "bytes as they are. opkit judge looks at UB, too, on vector cores that use no Matmul "
        "object.",
        needs_operator=True,
    ),
    FindingClass(
        "MEM-INPUT",
        "memcheck",
        "an input changed that is no output",
        "The caller of the operator still has what it gave, and may give it to the next one. What "
        "works in place has an output of the name of its input.",
        needs_operator=True,
    ),
    FindingClass(
        "MEM-FREED",
        "memcheck",
        "device memory used after aclrtFree",
        "The program has given the memory back: on the chip another allocation may lie there by "
        "now. Looked at for kernels and for copies, also those of a stream that run later.",
    ),
    FindingClass(
        "MEM-FREED-TENSOR",
        "memcheck",
        "a tensor used behind its FreeTensor",
        "FreeTensor lets the queue give the buffer to the next tensor, whose copy may run at any "
        "time from then on.",
    ),
    FindingClass(
        "MEM-FREE",
        "memcheck",
        "a free of memory that is not there to free",
        "aclrtFree and aclrtFreeHost want what aclrtMalloc and aclrtMallocHost returned, once.",
    ),
    FindingClass(
        "MEM-UNUSED",
        "memcheck",
        "device memory that nothing reads or writes",
        "Between its allocation and its end no copy and no kernel has touched a byte of it. "
        "Reported with --unused only.",
    ),
    FindingClass(
        "LEAK-DEVICE",
        "leakcheck",
        "device memory that is never freed",
        "Looked at when aclrtResetDevice takes the memory back, and when the program ends.",
    ),
    FindingClass(
        "MEM-ALIGN",
        "memcheck",
        "an address that is not aligned",
        "Instructions want local operands at multiples of 32 bytes, some at their element's size.",
    ),
    FindingClass(
        "MEM-CRASH",
        "memcheck",
        "raw memory access outside everything, or a division by zero",
        "The kernel's own C++ touched memory that is not there, overflowed its stack, or divided "
        "an integer by zero: tiling fields that are zero are the usual cause.",
    ),
    FindingClass(
        "QUEUE-MISUSE",
        "queuecheck",
        "a queue, buffer or event call out of order",
        "DeQue of an empty queue, EnQue or FreeTensor twice, AllocTensor with no buffer left, a "
        "tensor of another queue, a queue without InitBuffer.",
    ),
    FindingClass(
        "API-OPERAND",
        "apicheck",
        "a parameter outside its documented domain",
        "Repeat counts, strides, masks, event ids, modes and types have limits that the chip does "
        "not check.",
    ),
    FindingClass(
        "API-MEMORY",
        "apicheck",
        "memory that a kernel takes by malloc or new",
        "An AI core has no heap: the language has no malloc, new and free, and no containers of "
        "C++'s library, which call them. Here the kernel is a program of this machine, and they "
        "work. What the compiler leaves out as unused is not seen.",
        needs_operator=True,
    ),
    FindingClass(
        "API-OVERLAP",
        "apicheck",
        "a result written over a source that is still to be read",
        "A vector instruction reads ahead of what it writes. In one repeat its destination may be "
        "exactly the source or lie apart from it, and no repeat may write what a later one reads; "
        "Add, Sub, Mul, Max and Min may add up in src1 with a repeat stride of 0. Brcb, Gather, "
        "Gatherb and MrgSort take no source at the place of their result.",
    ),
    FindingClass(
        "API-ASSERT",
        "apicheck",
        "an assertion of the kernel's own failed",
        "The kernel says itself that something must hold, and it does not.",
    ),
    FindingClass(
        "NOTE-COPY-ROUNDED",
        "notecheck",
        "a copy of less than was asked for, in whole blocks",
        "DataCopy moves whole data blocks of 32 bytes and rounds its count down to them: of 126 "
        "floats it copies 120.",
    ),
    FindingClass(
        "NOTE-COPY-LENGTH",
        "notecheck",
        "a copy's length that does not fit 16 bits",
        "blockLen of DataCopyParams has 16 bits and keeps the low ones of what it is given. "
        "An explicit cast to uint16_t hides that from opkit.",
    ),
    FindingClass(
        "NOTE-PACKED-BURSTS",
        "notecheck",
        "bursts from data blocks of a result that is packed",
        "In UB every burst of DataCopyPad starts on a data block, 32 bytes. Results that an "
        "instruction has written one behind the other are elsewhere: only the first is taken.",
    ),
    FindingClass(
        "NOTE-PADDED-ROWS",
        "notecheck",
        "padded rows that are read as if they were packed",
        "DataCopyPad of several rows puts each on data blocks of its own. An instruction that "
        "takes rows times columns elements from the first on reads padding, and misses the end.",
    ),
    FindingClass(
        "NOTE-SCALAR-SYNC",
        "notecheck",
        "a scalar access that only the compiler orders",
        "GetValue and SetValue of local memory are ordered with the other pipes by the compiler's "
        "automatic synchronisation, its default. Built without it, the kernel has a race; with "
        "--no-auto-sync it is reported as one.",
    ),
    FindingClass(
        "NOTE-COPY-ORDER",
        "notecheck",
        "two copies of one pipe to the same bytes, without a barrier",
        "A copy may start before the one in front of it has ended. Where two write the same bytes "
        "the page of PipeBarrier wants PipeBarrier<PIPE_MTE2> or PIPE_MTE3 between them; the "
        "compiler puts none. Where both write the same values nothing is lost.",
    ),
    FindingClass(
        "NOTE-ACCURACY",
        "notecheck",
        "an instruction whose page states that it is inaccurate",
        "Results of Rsqrt and Reciprocal may be off by more than 1/1000 in half and 1/10000 in "
        "float. `opkit test` computes with errors of that size.",
    ),
)

_BY_ID = {row.id: row for row in CLASSES}
_BY_FAULT = {category: _BY_ID[id] for category, id in FAULT_IDS.items()}


def known_class(id: str) -> FindingClass | None:
    """Return the class of exactly that id; None where there is none."""
    return _BY_ID.get(id)


def find_class(id: str) -> FindingClass:
    """Return the class of that id, in any case, or of a fault category such as `OutOfBounds`.

    Raises:
        UsageError: there is none.
    """
    row = _BY_ID.get(id.upper()) or _BY_FAULT.get(id)
    if row is not None:
        return row
    near = difflib.get_close_matches(id.upper(), _BY_ID, n=1, cutoff=0.4)
    raise UsageError(
        f'"{id}" is not a class of finding',
        help=f'did you mean "{near[0]}"?' if near else '"opkit explain" lists them',
    )


def class_of_fault(category: str) -> FindingClass | None:
    """Return the class of a fault category; None for faults that are not the kernel's."""
    return _BY_FAULT.get(category)
