"""What goes wrong for reasons the user can mend: said plainly, never shown as a traceback."""


class StackError(Exception):
    """The embedded stack can't do what was asked. `problem` says what, `remedy` says what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}. {remedy}")
        self.problem, self.remedy = problem, remedy
