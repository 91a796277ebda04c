"""A system call allow-list for a child that only computes: no file, socket, program or other process is in reach."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from functools import cache

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2

_KILL_PROCESS = 0x80000000
_ERRNO = 0x00050000
_ALLOW = 0x7FFF0000

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06

_CLONE_THREAD = 0x00010000
_X32_BIT = 0x40000000

# Offsets in `struct seccomp_data`; both architectures are little-endian, so a low word comes first.
_NUMBER, _ARCH, _ARGS = 0, 4, 16

_SYSCALLS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (
        0xC000003E,
        {
            "read": 0, "write": 1, "close": 3, "fstat": 5, "lseek": 8, "mmap": 9, "mprotect": 10, "munmap": 11,
            "brk": 12,
            "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15, "pread64": 17, "ftruncate": 77,
            "readv": 19, "writev": 20,
            "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39, "exit": 60,
            "gettimeofday": 96, "getrlimit": 97, "getrusage": 98, "times": 100, "sigaltstack": 131, "gettid": 186,
            "time": 201, "futex": 202, "sched_getaffinity": 204, "set_tid_address": 218, "restart_syscall": 219,
            "clock_gettime": 228, "clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231,
            "set_robust_list": 273, "getrandom": 318, "membarrier": 324, "rseq": 334,
            "clone": 56, "tgkill": 234, "prlimit64": 302, "clone3": 435,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "read": 63, "write": 64, "close": 57, "fstat": 80, "lseek": 62, "mmap": 222, "mprotect": 226, "munmap": 215,
            "brk": 214, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "pread64": 67, "ftruncate": 46,
            "readv": 65,
            "writev": 66, "sched_yield": 124, "mremap": 216, "madvise": 233, "nanosleep": 101, "getpid": 172,
            "exit": 93,
            "gettimeofday": 169, "getrlimit": 163, "getrusage": 165, "times": 153, "sigaltstack": 132, "gettid": 178,
            "futex": 98, "sched_getaffinity": 123, "set_tid_address": 96, "restart_syscall": 128,
            "clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115, "exit_group": 94,
            "set_robust_list": 99, "getrandom": 278, "membarrier": 283, "rseq": 293,
            "clone": 220, "tgkill": 131, "prlimit64": 261, "clone3": 435,
        },
    ),
}  # fmt: skip

_GUARDED = {"clone", "tgkill", "prlimit64", "clone3"}


def warm_up() -> None:
    """Do all of `seal` that can be done ahead, in the process that will be sealed."""
    if supported():
        _c_library()
        allow_list(os.uname().machine, os.getpid())


def supported() -> bool:
    """Whether the filter is written for this system and machine; the kernel may still refuse it."""
    return sys.platform == "linux" and os.uname().machine in _SYSCALLS and sys.maxsize > 2**32


@cache
def allow_list(machine: str, pid: int) -> bytes:
    """The filter as packed BPF instructions, for a process `pid` of `machine`.

    Threads may be started, processes may not; a signal may be sent to the process itself only (`abort` needs it);
    limits may be read, not set. What is not listed fails with EPERM rather than killing, because the C library asks
    for much that it can do without. `clone3` fails with ENOSYS: its flags are behind a pointer, and the library then
    falls back to `clone`.
    """
    arch, numbers = _SYSCALLS[machine]
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_JUMP_AT_LEAST, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL_PROCESS),
    ]
    for name, number in numbers.items():
        if name not in _GUARDED:
            code += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    code += [(_JUMP_EQUAL, 0, 1, numbers["clone3"]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    code += _if_argument(numbers["clone"], 0, (_JUMP_ANY_BIT, _CLONE_THREAD))
    code += _if_argument(numbers["tgkill"], 0, (_JUMP_EQUAL, pid))
    code += _if_argument(numbers["prlimit64"], 2, (_JUMP_EQUAL, 0))
    code.append((_RETURN, 0, 0, _ERRNO | errno.EPERM))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _if_argument(number: int, index: int, test: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Allow system call `number` when the whole 64-bit argument `index` passes `test` in its low word.

    Equality also asks for an empty high word; a flag test need not.
    """
    low = _ARGS + 8 * index
    jump, value = test
    if jump == _JUMP_EQUAL:
        return [
            (_JUMP_EQUAL, 0, 6, number),
            (_LOAD, 0, 0, low),
            (_JUMP_EQUAL, 0, 3, value),
            (_LOAD, 0, 0, low + 4),
            (_JUMP_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        ]
    return [
        (_JUMP_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, low),
        (jump, 0, 1, value),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


@cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def prctl(option: int, *arguments: int | ctypes.c_void_p) -> None:
    """Call prctl(2).

    Raises:
        OSError: the kernel refused.
    """
    libc = _c_library()
    padded = [a if isinstance(a, ctypes.c_void_p) else ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    if libc.prctl(ctypes.c_int(option), *padded) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def seal() -> None:
    """Put the filter over this process, for good. `PR_SET_NO_NEW_PRIVS` must be set before.

    Raises:
        OSError: the kernel has no seccomp filters, or refused this one.
    """
    code = allow_list(os.uname().machine, os.getpid())
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p).value)
    prctl(PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.cast(ctypes.pointer(program), ctypes.c_void_p))
