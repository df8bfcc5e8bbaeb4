"""What a policy is told of a pool besides what was seen of it. Seconds and slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Origin = Literal["measured", "assumed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinTime:
    """Seconds from asking for more slots until the last of them is there.

    origin: ``measured`` on past actions on this pool, or ``assumed`` before the first one: what
        the cluster manager usually takes, or what a simulator was set to
    """

    seconds: float
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    """What is known of a pool whatever it does; ``None`` where it is not.

    cores: of each slot; their mean where slots differ
    minimum, maximum: fewest and most slots that the guards let through; the loop fills them in
    join: how long a new slot takes to be there
    """

    cores: float | None = None
    minimum: int | None = None
    maximum: int | None = None
    join: JoinTime | None = None
