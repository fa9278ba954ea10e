"""The one error of references."""


class ReferenceProfileError(ValueError):
    """A reference that can't be built or read: says where, which field, what is wrong and what to do about it."""

    def __init__(self, where: str, field_name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{where}: {field_name}: {problem}. {remedy}")
        self.where, self.field, self.problem, self.remedy = where, field_name, problem, remedy
