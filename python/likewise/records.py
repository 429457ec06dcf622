"""What does an object hold, fixed when it is made? Classes of fields that load quickly.

A data class compiles up to seven functions when its module is loaded, which took a fifth of a short command. A record
compiles only its ``__init__``. Values without methods that replace those of a tuple are named tuples.
"""

from typing import Any, ClassVar, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Record:
    """Fields by the annotations of the class, with defaults as in a data class.

    Two records are equal if they are of one class and all fields are; with ``eq=False``, only the same object is.
    """

    # Annotations by field
    _fields: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, *, eq: bool = True) -> None:
        super().__init_subclass__()
        own = cls.__annotations__ if "__annotations__" in vars(cls) else {}
        cls._fields = cls._fields | {name: kind for name, kind in own.items() if "ClassVar" not in str(kind)}
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]
        if "__init__" not in vars(cls):
            names = cls._fields
            given = ", ".join(f"{name}=cls.{name}" if hasattr(cls, name) else name for name in names)
            after = "; self.__post_init__()" if hasattr(cls, "__post_init__") else ""
            body = f"def __init__(self, {given}): self.__dict__.update({', '.join(f'{n}={n}' for n in names)}){after}"
            scope: dict[str, Any] = {"cls": cls}
            exec(body, scope)
            cls.__init__ = scope["__init__"]  # type: ignore[method-assign]
            cls.__init__.__annotations__ = cls._fields | {"return": None}

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties.
        return self._values()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields)})"

    def _compared(self) -> tuple[object, ...]:
        return tuple(self._values().values())

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._fields}

    def _asdict(self) -> dict[str, Any]:
        """Return the fields by name; records in them, too."""
        fields = self._values().items()
        return {name: value._asdict() if isinstance(value, Record) else value for name, value in fields}

    def _replace(self, **changes: Any) -> Self:
        """Return a record with some fields changed."""
        return type(self)(**(self._values() | changes))
