"""Decides a candidate's share of the traffic.

The candidate first runs as a shadow of the stable version (share 0), then answers a
share of the requests, which grows in steps. It is rolled back when the lower bound of
Wilson's interval for its rate of failed or late requests exceeds the limit: one failure
among three requests is not enough, ten are. Only the last `window` requests of a step
count.

Source: Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
1927.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace

#: Standard deviations of the interval: each bound holds with probability 98 %.
_Z = 2.05


def point_of(name: str, key: bytes) -> float:
    """Hashes a request or client to a number in [0, 1).

    Args:
      name: name of the rollout; others start with other requests.
      key: identifies the request or client.

    Returns:
      A number; the candidate answers if it is below the share.

    Example:
      >>> 0 <= point_of("digits", b"alice") == point_of("digits", b"alice") < 1
      True
    """
    # The length separates name and key unambiguously.
    text = f"{len(name)}:{name}".encode() + key
    digest = hashlib.blake2b(text, digest_size=7).digest()
    return int.from_bytes(digest, "big") / (1 << 56)


def least_rate(bad: int, of: int) -> float:
    """Returns a lower bound of the true rate.

    Args:
      bad: number of bad requests.
      of: number of requests.

    Returns:
      The lower bound of Wilson's interval; 0 without requests.

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
    """Configures the steps and limits of a rollout.

    Attributes:
      shares: share of the requests in each step; 0: shadow.
      hold: requests to the candidate after which the next step begins; None: only
        `forward` begins it.
      max_errors: allowed rate of errors.
      slow: seconds after which an answer is late; None: no limit.
      max_slow: allowed rate of late answers.
      least: requests to the candidate before it can be rolled back or forward.
      window: number of last requests that count.
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
    """The state of a rollout.

    Attributes:
      plan: its steps and limits.
      step: index of the current share in the plan.
      back: why it was rolled back; empty if it was not.
      seen: for each of the last requests, whether it failed and whether it was late.
      total: requests to the candidate in this step.

    Example:
      >>> rollout = Rollout(RolloutPlan(shares=(0.1, 1.0), hold=30))
      >>> for _ in range(30):
      ...     rollout = rollout.after(failed=False, seconds=0.01)
      >>> rollout.share
      1.0
      >>> for _ in range(20):
      ...     rollout = rollout.after(failed=True, seconds=0.01)
      >>> rollout.share, rollout.back
      (0.0, '20 of 20 requests failed; the allowed rate is 0.01')
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
        """Whether the candidate runs as a shadow."""
        return not self.back and self.plan.shares[self.step] == 0.0

    def after(self, failed: bool, seconds: float) -> Rollout:
        """Returns the rollout after one more request to the candidate.

        Args:
          failed: whether the request failed.
          seconds: time that it took.

        Returns:
          The rollout, possibly in the next step or rolled back.
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
                    f"{bad} of {len(seen)} requests {words}; the allowed rate is "
                    f"{allowed:g}"
                )
        if plan.hold is not None and now.total >= plan.hold:
            return now.forward()
        return now

    def forward(self) -> Rollout:
        """Returns the rollout in its next step, or restarted if it was rolled back.

        Returns:
          The rollout.
        """
        if self.back:
            return Rollout(self.plan)
        step = min(self.step + 1, len(self.plan.shares) - 1)
        return self if step == self.step else Rollout(self.plan, step)

    def rolled_back(self, why: str) -> Rollout:
        """Returns the rollout with its candidate rolled back.

        Args:
          why: the reason.

        Returns:
          The rollout.
        """
        return replace(self, back=why)
