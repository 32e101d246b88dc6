"""The self-sandbox of processes that run environment code or verifiers: Landlock, seccomp and resource limits, unprivileged.

Landlock (a kernel feature that any process may use on itself) takes away every file but the ones named; seccomp takes away the
calls that reach other processes, the network, new programs and file modes. Both hold for the process and all it forks, and
can't be undone. Nothing here needs a capability, and Docker's default profile allows all of it; decisions/confinement.md tells
why this is a short ctypes module.
"""

import ctypes
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_PR_SET_DUMPABLE: Final = 4
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SECCOMP_MODE_FILTER: Final = 2
_SIGKILL: Final = 9

# Landlock's system calls have one number on every architecture.
_LANDLOCK_CREATE_RULESET: Final = 444
_LANDLOCK_ADD_RULE: Final = 445
_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_CREATE_RULESET_VERSION: Final = 1
_LANDLOCK_RULE_PATH_BENEATH: Final = 1
_FS_EXECUTE, _FS_WRITE_FILE, _FS_READ_FILE, _FS_READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FS_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many file rights each ABI knows, from bit 0 (Documentation/userspace-api/landlock.rst)."""
_NET_RIGHTS: Final = 0b11
_SCOPES: Final = 0b11
"""Abstract UNIX sockets and signals, from ABI 6."""

_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""AUDIT_ARCH value, and the column of the table below."""

_REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # network, and messages between processes
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211), "sendmmsg": (307, 269), "mq_open": (240, 180), "msgget": (68, 186), "semget": (64, 190),
    "shmget": (29, 194),
    # other processes
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "prlimit64": (302, 261), "setpriority": (141, 140), "sched_setaffinity": (203, 122), "setpgid": (109, 154),
    "setsid": (112, 157),
    # new programs, and rights that Landlock does not speak of
    "execve": (59, 221), "execveat": (322, 281), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None), "lchown": (94, None), "fchown": (93, 55), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88), "futimesat": (261, None), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "chroot": (161, 51),
    # the kernel's wide and little-used surfaces
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "userfaultfd": (323, 282),
    "perf_event_open": (298, 241), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "unshare": (272, 97),
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430),
    "pivot_root": (155, 41), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262), "quotactl": (179, 60), "personality": (135, 92), "syslog": (103, 116),
}  # fmt: skip
_FORK: Final[dict[str, tuple[int | None, int | None]]] = {"fork": (57, None), "vfork": (58, None)}
_SENDTO: Final = (44, 206)
"""Refused with an address; without one it is `send` on a socket that is connected already."""
_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_CLONE_THREAD: Final = 0x00010000

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Limits:
    """Of one process; None leaves a limit as it is."""

    memory: int | None = None
    """Bytes of address space that it may have beyond what it has now."""
    cpu_seconds: int | None = None
    file_size: int = 64 << 20
    """Of files it may write to: none but those it inherits, its error output above all."""
    open_files: int = 256


@dataclass(frozen=True)
class Confinement:
    """Which layers hold. Reported by /health, so that an absent one is never silent."""

    landlock: int
    """ABI in force; 0 where the kernel has none."""
    seccomp: bool

    def as_dict(self) -> dict[str, int | bool]:
        return {"landlock": self.landlock, "seccomp": self.seccomp}


@cache
def python_paths() -> tuple[Path, ...]:
    """What a Python process must read to import its libraries: no current directory, nothing of the user's."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = {Path(sysconfig.get_path(name)).resolve() for name in names} | {Path(__file__).resolve().parent}
    found |= {Path(entry).resolve() for entry in sys.path if "lib-dynload" in entry}
    found |= {Path(name) for name in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/share/zoneinfo")}
    found |= {
        Path(name) for name in ("/etc/localtime", "/etc/ld.so.cache", "/etc/mime.types", "/dev/null", "/dev/urandom", "/dev/zero")
    }
    return tuple(sorted(path for path in found if path.exists()))


def confine(read: Iterable[Path], limits: Limits, *, may_fork: bool) -> Confinement:
    """Give up, for good: files but `read`, network, other processes, new programs. Single-threaded callers only."""
    _limit(limits)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_SET_DUMPABLE, 0)
    abi = _landlock(read)
    return Confinement(landlock=abi, seccomp=_seccomp(may_fork=may_fork))


def die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Processes whose parent ended become ours instead of the container's first process's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_fork() -> bool:
    """For a process that was confined with `may_fork` and needs it no longer."""
    return _seccomp(may_fork=False)


def _limit(limits: Limits) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.file_size)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    if limits.cpu_seconds is not None:
        _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    if limits.memory is not None and (size := _address_space()):
        _lower(resource.RLIMIT_AS, size + limits.memory)


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _address_space() -> int:
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _prctl(option: int, value: int) -> bool:
    if sys.platform != "linux":
        return False
    return bool(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0)


def _syscall(number: int, *args: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *args))


def _landlock(read: Iterable[Path]) -> int:
    """Returns the ABI in force, 0 where the kernel has no Landlock or it is switched off."""
    if sys.platform != "linux":
        return 0
    abi = _syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_LANDLOCK_CREATE_RULESET_VERSION))
    if abi < 1:
        return 0
    handled = (1 << _FS_RIGHTS.get(abi, 16)) - 1
    attributes = struct.pack("QQQ", handled, _NET_RIGHTS if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = _syscall(_LANDLOCK_CREATE_RULESET, ctypes.c_char_p(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if ruleset < 0:
        return 0
    try:
        for path in read:
            _allow(ruleset, path)
        if _syscall(_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) != 0:
            return 0
    finally:
        os.close(ruleset)
    return abi


def _allow(ruleset: int, path: Path) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _FS_READ_FILE | _FS_READ_DIR if path.is_dir() else _FS_READ_FILE
        if path == Path("/dev/null"):
            rights |= _FS_WRITE_FILE
        rule = struct.pack("=Qi", rights, handle)
        arguments = ctypes.c_int(ruleset), ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH), ctypes.c_char_p(rule), ctypes.c_uint32(0)
        _syscall(_LANDLOCK_ADD_RULE, *arguments)
    finally:
        os.close(handle)


def _seccomp(*, may_fork: bool) -> bool:
    if sys.platform != "linux" or platform.machine() not in _ARCHITECTURES:
        return False
    program = _program(*_ARCHITECTURES[platform.machine()], may_fork=may_fork)
    buffer = ctypes.create_string_buffer(b"".join(program), 8 * len(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    return bool(_libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), ctypes.c_char_p(header), 0, 0) == 0)


def _program(arch: int, column: int, *, may_fork: bool) -> list[bytes]:
    """BPF: foreign architectures die, refused calls answer EPERM, the rest is allowed."""
    load, equal, greater, bits, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, no_such_call, die = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38, 0x80000000
    refused = {**_REFUSED, **({} if may_fork else _FORK)}
    numbers = sorted(number for entry in refused.values() if (number := entry[column]) is not None)
    program = [_op(load, 4), _op(equal, arch, 1, 0), _op(answer, die), _op(load, 0)]
    if column == 0:
        program += [_op(greater, 0x40000000, 0, 1), _op(answer, die)]  # the x32 variants of all calls
    for number in numbers:
        program += [_op(equal, number, 0, 1), _op(answer, refuse)]
    for word in (48, 52):  # both halves of the fifth argument
        program += [_op(load, 0), _op(equal, _SENDTO[column], 0, 3), _op(load, word), _op(equal, 0, 1, 0), _op(answer, refuse)]
    program.append(_op(load, 0))
    if not may_fork:
        # The flags of clone3 lie behind a pointer, which BPF can't follow; without it libc falls back to clone.
        program += [_op(equal, _CLONE3[column], 0, 1), _op(answer, no_such_call)]
        program += [_op(equal, _CLONE[column], 0, 3), _op(load, 16), _op(bits, _CLONE_THREAD, 1, 0), _op(answer, refuse)]
    program.append(_op(answer, allow))
    return program


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
