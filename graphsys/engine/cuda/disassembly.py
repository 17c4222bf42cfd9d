"""What machine code consists of: instructions of a kernel by kind, from ``nvdisasm``."""

import importlib.util
import re
import shutil
import subprocess
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


def instruction_mix(cubin: Path) -> dict[str, int] | None:
    """Count the instructions of a cubin by kind; None where nothing can disassemble it.

    Padding (``NOP``) is left out. The counts are of the text, not of a run.
    """
    command = find_nvdisasm()
    if command is None:
        return None
    done = subprocess.run(
        [command, str(cubin)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return None
    return count_kinds(done.stdout)


def count_kinds(text: str) -> dict[str, int]:
    """Count the instructions of a disassembly by kind.

    Examples:
        >>> count_kinds("  /*0000*/  @!P0 LDG.E R0, [R2.64] ;")
        {'memory': 1}
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        match = _INSTRUCTION.match(line)
        if match is None or match.group(1) == "NOP":
            continue
        code = match.group(1)
        kind = _KIND_OF.get(code, "uniform" if code.startswith("U") else "other")
        found[kind] = found.get(kind, 0) + 1
    return found
