"""One condition of a layer, in the engine's own terms."""

from attrs import frozen

MatchValue = str | bool | int


@frozen
class Matcher:
    """One condition in the engine's own terms: ``Matcher("CommPrefix", "ib_")``."""

    kind: str
    value: MatchValue
