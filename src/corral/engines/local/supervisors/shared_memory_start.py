"""Starts a program without a copy of this process's memory: the new process makes a list of system calls, and no more.

A fork copies the page tables of the interpreter, and then every page that one of both processes writes to; the program
replaces all of it a moment later. Here the new process shares the memory of its parent (`clone` with CLONE_VM), as
those of `vfork` and `posix_spawn` do. No Python code can run in it, so it runs a loop of 27 instructions over a table:
system call, arguments, and what the result must be. It writes each result into the table. The last calls are the
`execve`; if none succeeds, or a call before them fails, the process notes the entry and exits with 127.

Unlike `vfork` the parent does not wait: a working directory on a server that does not answer delays no stop. The table
must stay as it is until the program is executed or the process has ended.

Among the calls may be a change to another account. The new process then has that account and shares memory with its
parent, until its program is executed: for this time, other processes of the account must not reach its memory. The
kernel prevents that: a change of accounts makes the memory inaccessible for `ptrace` and all that follows its rules,
before the new account is in force, unless the machine's setting `fs.suid_dumpable` is 1.

With that setting, on processors other than x86-64, and on kernels that permit no new executable memory there is no such
start (`is_supported`); then a job is started by a fork. The spawner imports this module, so it uses the standard
library only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

_CLONE_VM = 0x100
_STACK_BYTES = 4096
#: Of a system call that was not reached, or that did not return because it executed the program.
_NO_RESULT = 1 << 62
#: Entries have: number, four arguments, need, expected result, result.
_ENTRY = 8
_WORD_BYTES = 8

#: `start(table)`: r12 is the table, rbx the present entry.
_X86_64 = bytes.fromhex(
    "f30f1efa"  #         endbr64
    "4989fc"  #           mov r12, rdi
    "4531c0"  #           xor r8d, r8d (the fifth argument)
    "488d5f08"  #         lea rbx, [rdi+8]
    "488b03"  #     next: mov rax, [rbx]
    "488b7b08"  #         mov rdi, [rbx+8]
    "488b7310"  #         mov rsi, [rbx+16]
    "488b5318"  #         mov rdx, [rbx+24]
    "4c8b5320"  #         mov r10, [rbx+32]
    "0f05"  #             syscall
    "48894338"  #         mov [rbx+56], rax
    "48837b2801"  #       cmp qword [rbx+40], 1
    "7407"  #             je done
    "770b"  #             ja equal
    "4885c0"  #           test rax, rax
    "780c"  #             js failed
    "4883c340"  #   done: add rbx, 64
    "ebd3"  #             jmp next
    "483b4330"  #  equal: cmp rax, [rbx+48]
    "74f4"  #             je done
    "49891c24"  # failed: mov [r12], rbx
    "bf7f000000"  #       mov edi, 127
    "b8e7000000"  #       mov eax, 231 (exit_group)
    "0f05"  #             syscall
    "f4"  #               hlt
)


class Call(IntEnum):
    """The numbers of the system calls on x86-64."""

    WRITE = 1
    RT_SIGACTION = 13
    RT_SIGPROCMASK = 14
    DUP2 = 33
    GETPID = 39
    EXECVE = 59
    CHDIR = 80
    UMASK = 95
    GETPPID = 110
    SETSID = 112
    SETGROUPS = 116
    SETRESUID = 117
    SETRESGID = 119
    PRCTL = 157


class Need(IntEnum):
    """What the result of a call must be, so that the next one is made."""

    SUCCESS = 0
    NOTHING = 1
    EQUAL = 2


class Step(NamedTuple):
    """One system call. Bytes among its arguments stand for their address, sequences of bytes for that of an array of
    addresses that ends with a null."""

    call: Call
    arguments: tuple[int | bytes | Sequence[bytes], ...] = ()
    need: Need = Need.SUCCESS
    expected: int = 0


#: No process has this number: the list ends here.
_LAST = Step(Call.GETPID, need=Need.EQUAL, expected=-1)


class Started:
    """A process that was started, with the memory that it uses until its program is executed."""

    def __init__(self, pid: int, table: array[int], count: int, kept: tuple[object, ...]) -> None:
        self.pid = pid
        self._table = table
        self._count = count
        self._kept = kept

    def errors(self) -> list[int | None]:
        """For each step the number of its error, 0 for success, and None where it was not made, or did not return
        because the program runs."""
        results = [self._table[_ENTRY * (number + 1)] for number in range(self._count)]
        return [None if result == _NO_RESULT else max(0, -result) for result in results]

    @property
    def has_failed(self) -> bool:
        """Whether it ended before a program was executed. Known when its end, or the program, was noticed."""
        return self._table[0] != 0


def hides_memory(setting: str = "/proc/sys/fs/suid_dumpable") -> bool:
    """Whether the kernel hides the memory of a process that changes its account."""
    try:
        descriptor = os.open(setting, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.read(descriptor, 16).strip() in (b"0", b"2")
    finally:
        os.close(descriptor)


def _executable(code: bytes) -> mmap.mmap | None:
    """The code in memory of its own that can be executed and not changed; None where the kernel forbids that."""
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.write(code)
        if _libc.mprotect(_address(memory), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
            return None
    except OSError:
        return None
    return memory


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_libc.clone.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_memory = _executable(_X86_64) if os.uname().machine == "x86_64" and hides_memory() else None
_start = _address(_memory) if _memory is not None else 0


def is_supported() -> bool:
    return _start != 0


def start(steps: Sequence[Step]) -> Started:
    """Start a process that makes these system calls, of which one executes a program. Signals with handlers must be
    blocked: a handler would run in memory that is not the new process's own. Raises OSError."""
    table, texts = _table_of(steps)
    stack = ctypes.create_string_buffer(_STACK_BYTES)
    pid = _libc.clone(
        _start, ctypes.addressof(stack) + _STACK_BYTES, _CLONE_VM | int(signal.SIGCHLD), table.buffer_info()[0]
    )
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return Started(pid, table, len(steps), (texts, stack))


def _table_of(steps: Sequence[Step]) -> tuple[array[int], ctypes.Array[ctypes.c_char]]:
    """The table, and the texts that it refers to."""
    texts: dict[bytes, int] = {}
    length = 0
    arrays: dict[int, Sequence[bytes]] = {}
    for step in steps:
        for argument in step.arguments:
            if isinstance(argument, int):
                continue
            if not isinstance(argument, bytes):
                arrays[id(argument)] = argument
            for text in (argument,) if isinstance(argument, bytes) else argument:
                if text not in texts:
                    texts[text] = length
                    length += len(text) + 1
    stored = ctypes.create_string_buffer(b"\0".join(texts), length + 1)
    base = ctypes.addressof(stored)
    words = [0] * (1 + _ENTRY * (len(steps) + 1))
    places: dict[int, int] = {}
    for key, values in arrays.items():
        places[key] = len(words) * _WORD_BYTES
        words += [base + texts[value] for value in values]
        words.append(0)
    table = array("q", words)
    address = table.buffer_info()[0]
    for number, step in enumerate((*steps, _LAST)):
        passed = [
            one if isinstance(one, int) else base + texts[one] if isinstance(one, bytes) else address + places[id(one)]
            for one in step.arguments
        ]
        passed += [0] * (4 - len(passed))
        entry = 1 + _ENTRY * number
        table[entry : entry + _ENTRY] = array("q", (step.call, *passed, step.need, step.expected, _NO_RESULT))
    return table, stored
