"""The one error that input can raise: a line that names file, place, field and remedy."""


class InputError(ValueError):
    """Bad input, said in one line that names where it is and what to do about it.

    >>> raise InputError("channel.jsonl", "line 3", "field 'text' is missing", "add it or drop the line")
    Traceback (most recent call last):
    ...
    warmprefix.errors.InputError: channel.jsonl: line 3: field 'text' is missing; add it or drop the line

    `file`, `place` and `remedy` may be empty where there is none.
    """

    def __init__(self, file: object, place: str, problem: str, remedy: str = "") -> None:
        where = ": ".join(part for part in (str(file), place, problem) if part)
        text = f"{where}; {remedy}" if remedy else where
        super().__init__(" ".join(text.split()))
