"""Changes of limits, and why there were none. They serve CPU packages and GPUs."""

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field, frozen

from temper_core import Leftover

NOT_ASKED = "no cap is asked for"
AS_LOW = "the limit without a cap is as low"


@frozen
class Action:
    """A change of a package's limit, or why there was none."""

    kind: str
    """applied, restored, blocked or error."""
    package: str
    detail: str


@define
class LastActions:
    """The last action of each package."""

    _by_package: dict[str, Action] = field(factory=dict, init=False)

    def new(self, actions: Iterable[Action]) -> Iterator[Action]:
        """Keep *actions*. Yield those that differ from the last action of their package."""
        for action in actions:
            if action != self._by_package.get(action.package):
                self._by_package[action.package] = action
                yield action

    def by_package(self) -> Mapping[str, Action]:
        """Return a copy of the last actions."""
        return dict(self._by_package)


def restored(name: str, reason: str, *, is_back: bool) -> Action:
    """Return the action of a limit that is no longer ours."""
    word = "the former limit" if is_back else "left as another process has set it"
    return Action("restored", name, f"{word}: {reason}")


def let_go(name: str, left: Leftover | None, reason: str) -> Action:
    """Return the action of a limit that was let go. *left* is why it was not given back."""
    if left is not None and left.is_failure:
        return Action("error", name, left.why)
    return restored(name, reason, is_back=left is None)
