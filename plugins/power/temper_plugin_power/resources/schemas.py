"""Parts of structural schemas, as CustomResourceDefinitions have them (OpenAPI v3)."""

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
AMOUNT: Schema = {"type": "number", "minimum": 0}
COUNT: Schema = {"type": "integer", "minimum": 0}
PERCENT: Schema = {"type": "number", "minimum": 0, "maximum": 100}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
CAP_PERCENT: Schema = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 100}
CAP_WATTS: Schema = {"type": "number", "minimum": 1}
MOMENT: Schema = {"type": "string", "format": "date-time"}


def one_of(*values: str) -> Schema:
    """Return the schema of a text with these values."""
    return {"type": "string", "enum": list(values)}


def many(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def table(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """Return the schema of an object with these *properties*."""
    needs = {"required": list(required)} if required else {}
    return {"type": "object", **needs, "properties": properties}
