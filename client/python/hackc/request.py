# SPDX-License-Identifier: MIT
"""From what a caller has of a model to the message that a server gets."""

from __future__ import annotations

import json
import operator
import os
import pathlib
from collections.abc import Mapping
from typing import Any, Union

from hackc import errors

# {"batch": 4, "seq": (1, 512), "past": "0..2048"}: one size, or both inclusive bounds.
Shapes = Mapping[str, Union[int, "tuple[int, int]", str]]
# A config.json as a dict, its path or its folder's, or a transformers PretrainedConfig.
Config = Union[Mapping[str, Any], str, "os.PathLike[str]", Any]

_SYMBOLS = ("batch", "seq", "past")
_DTYPES = ("float32", "bfloat16", "float16")
# The server's limits of a config.
_MAX_BYTES, _MAX_DEPTH = 1 << 20, 32


def refuse(field: str, why: str) -> errors.InvalidConfig:
    return errors.InvalidConfig(errors.INVALID_ARGUMENT, f"{field}: {why}", field)


class _Repeated(dict[str, Any]):
    """A JSON object that gives `key` twice."""

    key = ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    repeated = _Repeated(made)
    seen: set[str] = set()
    repeated.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeated


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _check(document: Any, origin: str) -> None:
    """That no key is given twice and nothing lies too deep."""
    open_: list[tuple[Any, str, int]] = [(document, "", 0)]
    while open_:
        value, path, depth = open_.pop()
        if depth > _MAX_DEPTH:
            raise refuse("config", f"{origin}nested deeper than {_MAX_DEPTH} levels")
        if isinstance(value, _Repeated):
            field = path + value.key
            raise refuse(f"config.{field}", f"{origin}the key {field} is given twice")
        if isinstance(value, Mapping):
            open_ += [(inner, f"{path}{key}.", depth + 1) for key, inner in value.items()]
        elif isinstance(value, (list, tuple)):
            open_ += [(inner, f"{path[:-1]}[{i}].", depth + 1) for i, inner in enumerate(value)]


def _parse(text: str, origin: str) -> Any:
    if len(text) > _MAX_BYTES:
        raise refuse("config", f"{origin}larger than the limit of {_MAX_BYTES} bytes")
    try:
        document = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError:
        raise refuse("config", f"{origin}nested deeper than {_MAX_DEPTH} levels") from None
    except ValueError as error:
        raise refuse("config", f"{origin}not JSON: {error}") from error
    _check(document, origin)
    return document


def _read(config: Config) -> tuple[Any, str]:
    """(the JSON document, a name for people)"""
    if isinstance(config, Mapping):
        _check(config, "")
        return dict(config), ""
    if isinstance(config, (str, os.PathLike)):
        path = pathlib.Path(config)
        name = path.name if path.is_dir() else path.stem
        if path.is_dir():
            path = path / "config.json"
        elif path.name == "config.json":
            name = path.resolve().parent.name
        if path.exists() and not path.is_file():
            raise refuse("config", f"{path} is not a regular file")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise refuse("config", f"there is no {path}; expected a folder with a config.json, such a file, or what"
                         " transformers' AutoConfig gives; hackc downloads nothing") from None
        except (OSError, ValueError) as error:
            raise refuse("config", f"{path} cannot be read: {error}") from error
        return _parse(text, f"{path}: "), name
    if hasattr(config, "to_json_string"):
        # What save_pretrained would write: without it the defaults of every key that no model has are sent.
        name = str(getattr(config, "_name_or_path", "") or "")
        return _parse(config.to_json_string(), ""), name.rstrip("/").rsplit("/", 1)[-1]
    raise refuse("config", "expected a dict, a path or a transformers config, got " + type(config).__name__)


def _size(field: str, given: Any, least: int, most: int) -> int:
    """A whole number as it is: nothing is rounded or taken for one."""
    expected = f"expected a whole number of {least} to {most}, got {given!r}"
    try:
        size = operator.index(given)
    except TypeError:
        raise refuse(field, expected) from None
    if isinstance(given, bool) or not least <= size <= most:
        raise refuse(field, expected)
    return size


def _range(name: str, given: Any) -> tuple[int, int]:
    field, bounds = f"shapes.{name}", given
    if isinstance(given, str):
        words = [word.strip() for word in given.split("..")]
        bounds = [int(word) if word.isascii() and word.isdigit() else word for word in words]
    if not isinstance(bounds, (list, tuple)):
        bounds = (bounds,)
    if len(bounds) not in (1, 2) or any(isinstance(bound, (str, type(None))) for bound in bounds):
        raise refuse(field, f"expected a size or (least, most), got {given!r}")
    # The server takes 0..0 of the others for what is not given.
    low, high = (_size(field, bound, 0 if name == "past" else 1, 2**63 - 1) for bound in (bounds[0], bounds[-1]))
    return low, high


def dtype_name(dtype: Any) -> str:
    """"bfloat16" of "bfloat16" or torch.bfloat16."""
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise refuse("dtype", f"expected one of {', '.join(_DTYPES)}, got {dtype!r}")
    return name


def describe(config: Config, dtype: Any = None, shapes: Shapes | None = None, layers: int = 0,
             name: str = "", page_size: int = 0, logits: str = "all") -> Any:
    """The hackc.v1.ModelDescription."""
    from google.protobuf import json_format

    from hackc.v1 import model_pb2

    document, found = _read(config)
    if not isinstance(document, dict):
        raise refuse("config", f"expected a JSON object, got {type(document).__name__}")
    model: Any = model_pb2.ModelDescription()
    whole = "config" in document and not {"model_type", "architectures"} & set(document)
    try:
        json_format.ParseDict(document, model if whole else model.config)
    except (json_format.ParseError, RecursionError, TypeError, ValueError) as error:
        raise refuse("config", f"cannot be sent: {error}") from error
    if not isinstance(name, str):
        raise refuse("name", f"expected a string, got {name!r}")
    model.name = name or model.name or found
    if dtype is not None:
        model.dtype = model_pb2.DType.Value("DTYPE_" + dtype_name(dtype).upper())
    if not isinstance(shapes or {}, Mapping):
        raise refuse("shapes", f"expected a mapping such as {{'seq': (1, 512)}}, got {shapes!r}")
    for symbol, given in (shapes or {}).items():
        if symbol not in _SYMBOLS:
            raise refuse(f"shapes.{symbol}", f"expected one of {', '.join(_SYMBOLS)}")
        bounds = getattr(model, symbol)
        bounds.min, bounds.max = _range(symbol, given)
    if logits not in ("all", "last"):
        raise refuse("logits", f"expected all or last, got {logits!r}")
    if logits == "last":
        model.logits = model_pb2.ModelDescription.LOGITS_LAST
    # 0 is what is not given: the description's own value stays.
    model.page_size = _size("page_size", page_size, 0, 2**63 - 1) or model.page_size
    model.layers = _size("layers", layers, 0, 2**31 - 1) or model.layers
    return model


def local_arch() -> str:
    """The target of this machine's GPU as PyTorch sees it; "" without, for the server's default."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
