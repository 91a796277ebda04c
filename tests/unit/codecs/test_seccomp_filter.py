"""The system call filter, run instruction by instruction as the kernel would, for both machines it is written for."""

from __future__ import annotations

import errno
import struct

import pytest

from weighlock.codecs import seccomp

PID = 4321
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE_THREAD, CLONE_VM, SIGCHLD = 0x10000, 0x100, 17

FORBIDDEN = {
    "x86_64": {
        "open": 2, "openat": 257, "openat2": 437, "socket": 41, "socketpair": 53, "connect": 42, "sendmsg": 46,
        "recvmsg": 47, "fork": 57,
        "vfork": 58, "execve": 59, "execveat": 322, "kill": 62, "ptrace": 101, "io_uring_setup": 425, "rename": 82,
        "unlink": 87,
        "memfd_create": 319, "process_vm_readv": 310, "prctl": 157, "setrlimit": 160, "seccomp": 317, "bpf": 321,
        "ioctl": 16, "dup": 32,
        "mount": 165, "pidfd_getfd": 438, "userfaultfd": 323, "keyctl": 250,
    },
    "aarch64": {
        "openat": 56, "openat2": 437, "socket": 198, "socketpair": 199, "connect": 203, "sendmsg": 211,
        "recvmsg": 212, "execve": 221,
        "execveat": 281, "kill": 129, "ptrace": 117, "io_uring_setup": 425, "renameat": 38, "unlinkat": 35,
        "memfd_create": 279,
        "process_vm_readv": 270, "prctl": 167, "setrlimit": 164, "seccomp": 277, "bpf": 280, "ioctl": 29, "dup": 23,
        "mount": 40,
        "pidfd_getfd": 438, "userfaultfd": 282, "keyctl": 219,
    },
}  # fmt: skip


def verdict(machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    """What the filter returns for one system call."""
    data = struct.pack("=iIQ6Q", number, arch or ARCHES[machine], 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    code = list(struct.iter_unpack("=HBBI", seccomp.allow_list(machine, PID)))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x06:
            return int(value)
        if operation == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[operation]
            at += if_true if holds else if_false


def number(machine: str, name: str) -> int:
    return seccomp._SYSCALLS[machine][1][name]


@pytest.mark.parametrize("machine", ARCHES)
def test_nothing_that_reaches_files_sockets_programs_or_processes_is_allowed(machine: str) -> None:
    for name, call in FORBIDDEN[machine].items():
        assert verdict(machine, call) == EPERM, name


@pytest.mark.parametrize("machine", ARCHES)
def test_what_computing_needs_is_allowed(machine: str) -> None:
    for name in (
        "read",
        "write",
        "mmap",
        "munmap",
        "brk",
        "futex",
        "exit_group",
        "rt_sigreturn",
        "madvise",
        "clock_gettime",
    ):
        assert verdict(machine, number(machine, name)) == ALLOW, name


@pytest.mark.parametrize("machine", ARCHES)
def test_threads_may_be_started_and_processes_may_not(machine: str) -> None:
    clone = number(machine, "clone")

    assert verdict(machine, clone, CLONE_VM | CLONE_THREAD) == ALLOW
    assert verdict(machine, clone, SIGCHLD) == EPERM
    assert verdict(machine, clone, CLONE_THREAD << 32) == EPERM
    assert verdict(machine, number(machine, "clone3")) == ENOSYS


@pytest.mark.parametrize("machine", ARCHES)
def test_only_the_process_itself_may_be_signalled(machine: str) -> None:
    tgkill = number(machine, "tgkill")

    assert verdict(machine, tgkill, PID, 1, 6) == ALLOW
    assert verdict(machine, tgkill, PID - 1, 1, 9) == EPERM
    assert verdict(machine, tgkill, PID | 1 << 32, 1, 9) == EPERM


@pytest.mark.parametrize("machine", ARCHES)
def test_limits_may_be_read_and_not_set(machine: str) -> None:
    prlimit = number(machine, "prlimit64")

    assert verdict(machine, prlimit, 0, 9, 0, 0x1000) == ALLOW
    assert verdict(machine, prlimit, 0, 9, 0x1000, 0) == EPERM
    assert verdict(machine, prlimit, 0, 9, 0x1000 << 32, 0) == EPERM


@pytest.mark.parametrize("machine", ARCHES)
def test_another_machine_s_calls_kill(machine: str) -> None:
    assert verdict(machine, number(machine, "read"), arch=0x40000003) == KILL
    assert verdict(machine, 0x40000000 | number(machine, "read")) == KILL
