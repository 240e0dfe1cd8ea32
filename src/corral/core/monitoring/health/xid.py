"""Error codes of NVIDIA's driver (XID) in plain meaning: whose fault, how bad, and what to do.

The facts are those of NVIDIA's public XID catalog; the judgement is ours: a code that a program can bring about by
itself is only noted, one that asks for a reset of the GPU or for its replacement fails it at once, and whatever lies
between, or is not known, makes it suspect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Where to look first."""

    PROGRAM = "program"
    DRIVER = "driver"
    GPU = "gpu"
    LINK = "link"
    UNCLEAR = "unclear"


class Severity(StrEnum):
    #: says nothing against the GPU
    NOTE = "note"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Xid:
    code: int
    meaning: str
    fault: Fault
    severity: Severity
    advice: str


DEBUG = "Look for the error in the program, for example with compute-sanitizer. The GPU itself is fine."
RESTART = "Start the job again. If it comes back on this GPU only, run the self-test."
RESET = "Reset the GPU or restart the node, then run the self-test; if it comes back, replace the GPU."
REBOOT = "Restart the node. If it comes back, update the driver; then check the GPU, its seat and its power."
REPLACE = "Replace the GPU."
CABLES = "Check the NVLink bridges or switches and the GPU's seat; reset all GPUs of the node when it is empty."


def about(code: int) -> Xid:
    """What is known about a code; one that is not in the table is taken as a reason for suspicion."""
    known = TABLE.get(code)
    if known is not None:
        return known
    return Xid(
        code=code,
        meaning="an error of the driver that is not in corral's table",
        fault=Fault.UNCLEAR,
        severity=Severity.SUSPECT,
        advice="Look the code up in NVIDIA's XID catalog and in the kernel's log of the node.",
    )


def _xid(code: int, meaning: str, fault: Fault, severity: Severity, advice: str) -> Xid:
    return Xid(code=code, meaning=meaning, fault=fault, severity=severity, advice=advice)


_P, _D, _G, _L, _U = Fault.PROGRAM, Fault.DRIVER, Fault.GPU, Fault.LINK, Fault.UNCLEAR
_NOTE, _SUSPECT, _FAILED = Severity.NOTE, Severity.SUSPECT, Severity.FAILED

TABLE = {
    xid.code: xid
    for xid in (
        _xid(8, "the GPU stopped working on a task", _U, _SUSPECT, RESTART),
        _xid(11, "the program sent a broken stream of commands", _P, _NOTE, DEBUG),
        _xid(13, "the program did something illegal, such as reading outside an array", _P, _NOTE, DEBUG),
        _xid(31, "the program touched memory that it does not have", _P, _NOTE, DEBUG),
        _xid(32, "a stream of commands arrived broken", _U, _SUSPECT, RESTART),
        _xid(38, "the driver's firmware failed", _D, _SUSPECT, REBOOT),
        _xid(39, "a copy engine met an illegal request", _P, _NOTE, DEBUG),
        _xid(40, "a copy engine met an illegal request", _P, _NOTE, DEBUG),
        _xid(41, "a copy engine met an illegal request", _P, _NOTE, DEBUG),
        _xid(43, "the program was stopped by an error of its own", _P, _NOTE, DEBUG),
        _xid(44, "a fault while switching between programs", _U, _SUSPECT, RESTART),
        _xid(45, "the driver cleaned up after a program that was ended", _P, _NOTE, "Nothing to do on the GPU."),
        _xid(46, "the GPU stopped working and must be reset", _G, _FAILED, RESET),
        _xid(48, "an error in memory that could not be corrected", _G, _FAILED, RESET),
        _xid(54, "the extra power cable is not connected", _G, _FAILED, "Connect the GPU's power cable."),
        _xid(61, "a warning of the GPU's own controller", _G, _SUSPECT, REBOOT),
        _xid(62, "the GPU's own controller has halted", _G, _FAILED, RESET),
        _xid(63, "bad memory was found and is replaced at the next reset", _G, _SUSPECT, RESET),
        _xid(64, "bad memory was found and could not be marked for replacement", _G, _FAILED, REPLACE),
        _xid(68, "the video decoder met an illegal request", _P, _NOTE, DEBUG),
        _xid(69, "the program used the GPU in a way that it does not know", _P, _NOTE, DEBUG),
        _xid(74, "an error on an NVLink connection", _L, _SUSPECT, CABLES),
        _xid(79, "the GPU has fallen off the bus: the node cannot reach it any more", _G, _FAILED, REBOOT),
        _xid(92, "many errors in memory that were corrected", _G, _SUSPECT, RESET),
        _xid(94, "an error in memory that cost one program its data", _G, _FAILED, RESET),
        _xid(95, "an error in memory that may have touched every program on the GPU", _G, _FAILED, RESET),
        _xid(109, "switching between programs took too long", _U, _SUSPECT, RESTART),
        _xid(110, "a security fault", _G, _FAILED, RESET),
        _xid(119, "the GPU's system processor does not answer", _G, _FAILED, RESET),
        _xid(120, "the GPU's system processor has failed", _G, _FAILED, RESET),
        _xid(121, "errors on the link between GPU and CPU, corrected", _L, _SUSPECT, REBOOT),
        _xid(123, "the GPU's power controller does not answer", _G, _SUSPECT, REBOOT),
        _xid(136, "a link could not be set up", _L, _SUSPECT, CABLES),
        _xid(137, "a program touched memory of another GPU that it does not have", _P, _NOTE, DEBUG),
        _xid(140, "an error in memory from which the GPU has not recovered", _G, _FAILED, RESET),
        _xid(143, "the GPU could not be initialised", _G, _FAILED, RESET),
        _xid(144, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(145, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(146, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(147, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(148, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(149, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(150, "an NVLink error", _L, _SUSPECT, CABLES),
        _xid(154, "the driver asks for a way to recover; the kernel's log says which", _G, _SUSPECT, RESET),
        _xid(155, "an NVLink error that software reported", _L, _SUSPECT, CABLES),
        _xid(156, "a part of the GPU was taken out of use", _G, _SUSPECT, RESET),
        _xid(157, "a broken part of the GPU could not be taken out of use", _G, _FAILED, REPLACE),
        _xid(158, "the GPU did not answer in time and cannot go on", _G, _FAILED, RESET),
        _xid(160, "a channel of the GPU's memory was taken out of use", _G, _SUSPECT, RESET),
        _xid(161, "a broken channel of the GPU's memory could not be taken out of use", _G, _FAILED, REPLACE),
    )
}
