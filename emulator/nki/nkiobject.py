"""`NKIObject`: classes of kernels whose attributes are all constructor fields, annotated or not, decorated or not."""

from __future__ import annotations

import copy
import inspect
import types
from dataclasses import dataclass, field, is_dataclass
from typing import Any


class NKIObject:
    """Base class of a kernel's own classes."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        given = dict(inspect.get_annotations(cls))
        # Fields without a default first, the others in the order of their definition, annotated or not.
        annotations = {name: kind for name, kind in given.items() if name not in vars(cls)}
        for name, value in list(vars(cls).items()):
            if name.startswith("__") or isinstance(value, (types.FunctionType, property, classmethod, staticmethod, type)):
                continue
            annotations[name] = given.get(name, Any)
            if isinstance(value, (list, dict, set)):
                # A default that is mutable becomes a copy for each object, which plain dataclasses refuse.
                setattr(cls, name, field(default_factory=lambda value=value: copy.deepcopy(value)))  # type: ignore[misc]
        cls.__annotations__ = annotations

    def __new__(cls, *args: Any, **kwargs: Any) -> NKIObject:
        # Undecorated classes get their constructor at first use: earlier would break a frozen dataclass.
        if "__init__" not in cls.__dict__ and "__dataclass_fields__" not in cls.__dict__ and cls is not NKIObject:
            inherited = any("__init__" in base.__dict__ for base in cls.__mro__[1:] if base not in (NKIObject, object))
            if not inherited or is_dataclass(cls):
                dataclass(cls)
        return super().__new__(cls)
