"""The one base exception: a broken invariant or a wrong call raises; an expected condition is an outcome value."""


class HeadraceError(Exception):
    """Base of every exception that headrace raises on purpose."""


class InvalidInputError(HeadraceError):
    """Input that cannot be used, with *all* its problems.

    Attributes:
        problems: one sentence per problem, each with the value, the bound and the name.
    """

    def __init__(self, what: str, problems: tuple[str, ...]) -> None:
        self._what = what
        self.problems = problems
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"{what}: {len(problems)} problem{'s' if len(problems) != 1 else ''}\n{lines}")

    def __reduce__(self) -> tuple[type["InvalidInputError"], tuple[str, tuple[str, ...]]]:
        """Travel from one process to another with both arguments; an exception by itself keeps its message alone."""
        return type(self), (self._what, self.problems)
