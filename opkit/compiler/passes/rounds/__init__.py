"""Rounds of a loop that do the same at other places, in one operator each.

Front ends that run a program's loops while they trace it leave one copy of the body for each round.
`join_rounds` finds the copies again, from what is written side by side or added up, and gives the
body an axis that counts the rounds: the graph, and what is compiled of it, has the size of the
body, not that of the loop.
"""

from .joining import join_rounds

__all__ = ["join_rounds"]
