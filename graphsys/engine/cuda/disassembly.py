"""What machine code consists of: instructions of a kernel by kind, from ``nvdisasm``."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

KINDS = {
    "memory": "LD LDG ST STG ATOM ATOMG RED LDL STL LDC",
    "shared": "LDS STS ATOMS LDSM",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "fp32": "FADD FMUL FFMA FSETP FMNMX FSEL FCHK MUFU FSET",
    "conversion": "I2F F2I F2F I2I I2FP F2FP FRND",
    "inter_thread": "SHFL VOTE VOTEU MATCH REDUX WARPSYNC",
    "control": "BRA BRX JMP CALL RET EXIT BSSY BSYNC BREAK YIELD NANOSLEEP BAR MEMBAR "
    "BPT ERRBAR CCTL DEPBAR KILL",
    "integer": "IADD IADD3 IMAD ISETP IMNMX VIMNMX LOP3 LOP SHF LEA IABS POPC FLO BREV "
    "SGXT BMSK PRMT IDP VIADD VABSDIFF IMUL",
    "move": "MOV SEL CS2R S2R P2R R2P PLOP3 R2UR PSETP",
}
"""Opcodes by kind; the uniform datapath's (``U...``) and others are further kinds."""

_KIND_OF = {code: kind for kind, codes in KINDS.items() for code in codes.split()}
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Z0-9]*)")

_LINE = re.compile(r'//## File "[^"]*", line (\d+)')


def find_nvdisasm() -> str | None:
    """Return the path of ``nvdisasm``: the one on ``$PATH``, or Triton's; None without."""
    found = shutil.which("nvdisasm")
    if found:
        return found
    triton = importlib.util.find_spec("triton")
    if triton is None or triton.origin is None:
        return None
    bundled = Path(triton.origin).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    return str(bundled) if bundled.exists() else None


def disassembly(cubin: Path) -> str | None:
    """Return a cubin's instructions, with their source lines; None without a tool for it.

    Args:
        cubin: Machine code.
    """
    command = find_nvdisasm()
    if command is None:
        return None
    done = subprocess.run(
        [command, "-c", "-gi", str(cubin)], capture_output=True, text=True, check=False
    )
    return None if done.returncode else done.stdout


def count_kinds(text: str) -> dict[str, int]:
    """Count the instructions of a disassembly by kind; padding (``NOP``) is left out.

    The counts are of the text, not of a run.

    Examples:
        >>> count_kinds("  /*0000*/  @!P0 LDG.E R0, [R2.64] ;")
        {'memory': 1}
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        kind = _kind_of(line)
        if kind is not None:
            found[kind] = found.get(kind, 0) + 1
    return found


def count_lines(text: str, user_lines: Mapping[int, str]) -> dict[str, dict[str, int]]:
    r"""Count the instructions of a disassembly by the user's line and by kind.

    An instruction belongs to the innermost function that was inlined there and that the
    user wrote; what is left is the engine's own loop, under the empty name.

    Args:
        text: From ``nvdisasm -gi``: lines before an instruction say where it comes from.
        user_lines: The user's file and line, by the module's line.

    Examples:
        >>> where = '//## File "m.py", line 4 inlined at "m.py", line 9'
        >>> count_lines(where + "\n  /*0000*/  DADD R1, R2, R3 ;", {4: "p.py:7"})
        {'p.py:7': {'fp64': 1}}
    """
    found: dict[str, dict[str, int]] = {}
    at, is_told = "", False
    for line in text.splitlines():
        told = _LINE.search(line)
        if told is not None:
            at = "" if not is_told else at
            at = at or user_lines.get(int(told.group(1)), "")
            is_told = True
            continue
        kind = _kind_of(line)
        if kind is not None:
            is_told = False
            own = found.setdefault(at, {})
            own[kind] = own.get(kind, 0) + 1
    return found


def _kind_of(line: str) -> str | None:
    """Return the kind of the instruction in a line; None where there is none."""
    match = _INSTRUCTION.match(line)
    if match is None or match.group(1) == "NOP":
        return None
    code = match.group(1)
    return _KIND_OF.get(code, "uniform" if code.startswith("U") else "other")
