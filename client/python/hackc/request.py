# SPDX-License-Identifier: MIT
"""From what a caller has of a model to the message that a server gets."""

from __future__ import annotations

import json
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


def refuse(field: str, why: str) -> errors.InvalidConfig:
    return errors.InvalidConfig(errors.INVALID_ARGUMENT, f"{field}: {why}", field)


def _read(config: Config) -> tuple[Any, str]:
    """(the JSON document, a name for people)"""
    if isinstance(config, Mapping):
        return dict(config), ""
    if isinstance(config, (str, os.PathLike)):
        path = pathlib.Path(config)
        name = path.name if path.is_dir() else path.stem
        if path.is_dir():
            path = path / "config.json"
        elif path.name == "config.json":
            name = path.resolve().parent.name
        try:
            return json.loads(path.read_text(encoding="utf-8")), name
        except FileNotFoundError:
            raise refuse(str(config), f"there is no {path}") from None
        except (OSError, ValueError) as error:
            raise refuse(str(path), f"cannot be read: {error}") from error
    if hasattr(config, "to_json_string"):
        # What save_pretrained would write: without it the defaults of every key that no model has are sent.
        name = str(getattr(config, "_name_or_path", "") or "")
        return json.loads(config.to_json_string()), name.rstrip("/").rsplit("/", 1)[-1]
    raise refuse("config", "expected a dict, a path or a transformers config, got " + type(config).__name__)


def _range(name: str, given: Any) -> tuple[int, int]:
    bounds: Any = given
    if isinstance(given, str):
        bounds = given.split("..") if ".." in given else [given, given]
    elif isinstance(given, int):
        bounds = (given, given)
    try:
        low, high = (int(bound) for bound in bounds)
        return low, high
    except (TypeError, ValueError):
        raise refuse(f"shapes.{name}", f"expected a size or (least, most), got {given!r}") from None


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
    except (json_format.ParseError, TypeError, ValueError) as error:
        raise refuse("config", f"cannot be sent: {error}") from error
    model.name = name or model.name or found
    if dtype is not None:
        model.dtype = model_pb2.DType.Value("DTYPE_" + dtype_name(dtype).upper())
    for symbol, given in (shapes or {}).items():
        if symbol not in _SYMBOLS:
            raise refuse(f"shapes.{symbol}", f"expected one of {', '.join(_SYMBOLS)}")
        bounds = getattr(model, symbol)
        bounds.min, bounds.max = _range(symbol, given)
    if logits not in ("all", "last"):
        raise refuse("logits", f"expected all or last, got {logits!r}")
    if logits == "last":
        model.logits = model_pb2.ModelDescription.LOGITS_LAST
    if page_size:
        model.page_size = page_size
    if layers:
        model.layers = layers
    return model


def local_arch() -> str:
    """The target of this machine's GPU as PyTorch sees it; "" without, for the server's default."""
    import sys

    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return ""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")
