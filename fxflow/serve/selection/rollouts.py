"""Whether a new version gets more of the traffic, less, or none.

A candidate is watched beside the stable version: in its shadow (`share` 0), or for a
share of the requests, which grows in steps. It is rolled back when its true rate of
failed or late requests is above the limit, by the lower end of Wilson's interval: one
error among the first three says nothing yet, ten do.
Only the last `window` requests of a step count.

Source: Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
1927.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

#: Deviations of the interval: 98 % of times an end is on the right side.
_Z = 2.05


def point_of(name: str, key: bytes) -> float:
    """Returns where a request or client stands, in [0, 1), always the same.

    Args:
      name: of the roll-out, so that another one sends others first.
      key: what stands for the request or client.

    Returns:
      A number; those below a share are the candidate's.

    Example:
      >>> 0 <= point_of("digits", b"alice") == point_of("digits", b"alice") < 1
      True
    """
    # The length keeps what belongs to name and key apart.
    text = f"{len(name)}:{name}".encode() + key
    digest = hashlib.blake2b(text, digest_size=7).digest()
    return int.from_bytes(digest, "big") / (1 << 56)


def least_rate(bad: int, of: int) -> float:
    """Returns what the true rate is at least, most probably.

    Args:
      bad: how many were.
      of: how many there were.

    Returns:
      The lower end of Wilson's interval; 0 if there were none.

    Example:
      >>> round(least_rate(1, 3), 3), round(least_rate(50, 100), 3)
      (0.058, 0.4)
    """
    if not of:
        return 0.0
    p, z2 = bad / of, _Z**2
    spread = _Z * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    return max(0.0, (p + z2 / (2 * of) - spread) / (1 + z2 / of))


@dataclass(frozen=True)
class RolloutPlan:
    """How a candidate is rolled out.

    Attributes:
      shares: of the requests, one step after the other; 0 is in the shadow.
      hold: requests of the candidate in each step, after which the next begins; None:
        it begins on request.
      max_errors: the rate of errors that is allowed.
      slow: seconds above which an answer is late; None: none is.
      max_slow: the rate of late answers that is allowed.
      least: requests of the candidate before anything is decided.
      window: requests that count.
    """

    shares: tuple[float, ...] = (0.0, 0.01, 0.1, 0.5, 1.0)
    hold: int | None = None
    max_errors: float = 0.01
    slow: float | None = None
    max_slow: float = 0.05
    least: int = 20
    window: int = 1000


@dataclass(frozen=True)
class Rollout:
    """How far a candidate is.

    Attributes:
      plan: how it is rolled out.
      step: the share it has, as a place in the plan.
      back: why it was rolled back; empty: it was not.
      seen: whether each of its last requests failed, and whether it was late.
      total: requests that it had in this step.

    Example:
      >>> rollout = Rollout(RolloutPlan(shares=(0.1, 1.0), hold=30))
      >>> for _ in range(30):
      ...     rollout = rollout.after(failed=False, seconds=0.01)
      >>> rollout.share
      1.0
      >>> for _ in range(20):
      ...     rollout = rollout.after(failed=True, seconds=0.01)
      >>> rollout.share, rollout.back
      (0.0, '20 of 20 requests failed, and a rate of 0.01 is allowed')
    """

    plan: RolloutPlan
    step: int = 0
    back: str = ""
    seen: tuple[tuple[bool, bool], ...] = ()
    total: int = 0

    @property
    def share(self) -> float:
        """The share of the requests that the candidate answers."""
        return 0.0 if self.back else self.plan.shares[self.step]

    @property
    def shadowed(self) -> bool:
        """Whether the candidate gets copies of the requests."""
        return not self.back and self.plan.shares[self.step] == 0.0

    def after(self, failed: bool, seconds: float) -> Rollout:
        """Returns the roll-out that has seen one more request of the candidate.

        Args:
          failed: whether there was no answer.
          seconds: that it took.

        Returns:
          The roll-out, perhaps a step further, or back.
        """
        if self.back:
            return self
        plan = self.plan
        late = plan.slow is not None and seconds > plan.slow
        seen = (*self.seen[-(plan.window - 1) :], (failed, late))
        now = replace(self, seen=seen, total=self.total + 1)
        if len(seen) < plan.least:
            return now
        for place, allowed, words in (
            (0, plan.max_errors, "failed"),
            (1, plan.max_slow, f"took more than {plan.slow} s"),
        ):
            bad = sum(entry[place] for entry in seen)
            if least_rate(bad, len(seen)) > allowed:
                return now.rolled_back(
                    f"{bad} of {len(seen)} requests {words}, and a rate of "
                    f"{allowed:g} is allowed"
                )
        if plan.hold is not None and now.total >= plan.hold:
            return now.forward()
        return now

    def forward(self) -> Rollout:
        """Returns the roll-out a step further; one that was rolled back begins again.

        Returns:
          The roll-out.
        """
        if self.back:
            return Rollout(self.plan)
        step = min(self.step + 1, len(self.plan.shares) - 1)
        return self if step == self.step else Rollout(self.plan, step)

    def rolled_back(self, why: str) -> Rollout:
        """Returns the roll-out whose candidate gets nothing more.

        Args:
          why: in words.

        Returns:
          The roll-out.
        """
        return replace(self, back=why)
