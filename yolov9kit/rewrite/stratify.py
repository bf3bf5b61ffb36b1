"""Groups of pictures → sides, so that each class has its share on each side.

Iterative stratification (Sechidis, Tsoumakas, Vlahavas 2011): the rarest class is dealt out first, each time to the
side that still wants most of it. Whole groups are dealt instead of single pictures.
"""

import numpy as np


def stratify(presence: np.ndarray, sizes: np.ndarray, shares: np.ndarray, seed: int) -> np.ndarray:
    """The side of each group, G int64.

    A class that is in as many groups as there are sides gets onto each side, unless other classes of the same groups
    stand in the way; where it is in fewer, the first sides come first. So do pictures themselves. The same input and
    seed give the same sides.

    Args:
        presence: G x C int64: how many pictures of each group have a box of each class.
        sizes: G int64: how many pictures each group has.
        shares: S float64: the wished share of each side, their sum is 1.
        seed: another seed, another of the equally good ways to deal.
    """
    dealer = _Dealer(presence, sizes, shares, seed)
    dealer.deal()
    dealer.give_missing()
    return dealer.side


class _Dealer:
    def __init__(self, presence: np.ndarray, sizes: np.ndarray, shares: np.ndarray, seed: int) -> None:
        # pictures themselves are one more class, the most frequent: backgrounds are dealt out by it, at the end
        self.presence = np.concatenate((presence, sizes[:, None]), axis=1).astype(np.int64)
        self.sides = np.flatnonzero(shares > 0)
        self.has = self.presence > 0
        self.side = np.full(len(sizes), -1, np.int64)
        self.wanted = shares[:, None] * self.presence.sum(axis=0)  # S x C pictures
        self.groups = np.zeros(self.wanted.shape, np.int64)  # S x C: groups of each side that have each class
        # large groups first, while there is room for them everywhere; equal ones by the seed
        random = np.random.default_rng(seed).permutation(len(sizes))
        self.order = random[np.argsort(-sizes[random], kind="stable")]

    def deal(self) -> None:
        left = np.ones(len(self.side), bool)
        while left.any():
            groups_left = self.has[left].sum(axis=0)
            present = np.flatnonzero(groups_left)
            rarest = int(present[groups_left[present].argmin()])
            groups = self.order[left[self.order] & self.has[self.order, rarest]]
            for done, group in enumerate(groups.tolist()):
                self._give(group, self._best(rarest, len(groups) - done))
            left[groups] = False

    def give_missing(self) -> None:
        """Moves a small group to a side that has none of a class, where no side loses its last of any class."""
        for label in np.argsort(self.has.sum(axis=0), kind="stable").tolist():
            for side in self.sides.tolist():
                if self.groups[side, label]:
                    continue
                having = self.order[::-1][self.has[self.order[::-1], label]]
                movable = (g for g in having.tolist() if (self.groups[self.side[g]][self.has[g]] > 1).all())
                group = next(movable, None)
                if group is not None:
                    self.groups[self.side[group]] -= self.has[group]
                    self._give(group, side)

    def _best(self, label: int, groups_left: int) -> int:
        lacking = self.sides[self.groups[self.sides, label] == 0]
        if len(lacking) and groups_left <= len(lacking):  # the last chance: the first sides come first
            return int(lacking[0])
        wanted = self.wanted[self.sides, label]
        best = self.sides[wanted > wanted.max() - 1e-9]
        return int(best[self.wanted[best, -1].argmax()])

    def _give(self, group: int, side: int) -> None:
        self.side[group] = side
        self.groups[side] += self.has[group]
        self.wanted[side] -= self.presence[group]
