"""One finding of the paper, answered by a statistic."""

from dataclasses import dataclass

HOLDS, NOT, OPEN = "holds", "does not hold", "open until a GPU"
GPU, OLD = "h100", "m2050"
LABELS = {GPU: "H100", OLD: "M2050"}
MOST, FEW = 0.75, 0.25
"""Shares of pairs, or of series, from which on there is said to be a difference."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What the paper says, what was asked of the runs, and what they answered.

    Attributes:
        subject: Its letter, and what it is about.
        paper: The paper's finding, in our words.
        statistic: What is computed, and from when on the finding holds.
        here: The figures.
        verdict: One of the three above, perhaps with a remark after a semicolon.
    """

    subject: str
    paper: str
    statistic: str
    here: str
    verdict: str

    def cells(self) -> tuple[str, ...]:
        """Return a row of the table."""
        return self.subject, self.paper, self.statistic, self.here, self.verdict


def judge(holds: bool, remark: str = "") -> str:
    """Return a verdict."""
    return (HOLDS if holds else NOT) + (f"; {remark}" if remark else "")
