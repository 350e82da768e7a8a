"""A server on the official Python SDK, or with the argument "fastmcp" on FastMCP, of which the tools coerce strings.

It writes down every string of each value that a tool receives.
"""

import ast
import json
import os
import sys
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator

if sys.argv[1:] == ["fastmcp"]:
    from fastmcp import FastMCP

    server = FastMCP("coerced")
else:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("coerced")


class Nested(BaseModel):
    path: str | None = None
    more: list[Any] | None = None
    below: "Nested | None" = None


def strings(value: object) -> list[str]:
    if isinstance(value, BaseModel):
        return strings(value.model_dump(exclude_none=True))
    if isinstance(value, dict):
        return [found for pair in value.items() for part in pair for found in strings(part)]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [found for part in value for found in strings(part)]
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    # Half of a surrogate pair has no bytes.
    return [value.encode(errors="replace").decode()] if isinstance(value, str) else []


def executed(tool: str, *values: object) -> str:
    line = {"tool": tool, "strings": [found for value in values for found in strings(value)]}
    with open(os.environ["DIFFERENTIAL_LOG"], "a", encoding="utf-8") as book:
        book.write(json.dumps(line) + "\n")
    return "done"


def parsed(parser):
    return BeforeValidator(lambda value: parser(value) if isinstance(value, str) else value)


Yaml = Annotated[list[Any] | dict[Any, Any], parsed(yaml.safe_load)]
Literal = Annotated[list[Any] | tuple[Any, ...] | dict[Any, Any], parsed(ast.literal_eval)]
Json = Annotated[Any, parsed(json.loads)]


def take_list(paths: list[Any] | None = None, items: list[Any] | None = None) -> str:
    return executed("take_list", paths, items)


def take_texts(paths: list[str] | None = None, items: list[str] | None = None) -> str:
    return executed("take_texts", paths, items)


def take_map(paths: dict[str, Any] | None = None, items: dict[str, Any] | None = None) -> str:
    return executed("take_map", paths, items)


def take_union(paths: str | list[str] | dict[str, Any] = "", items: str | list[str] | dict[str, Any] = "") -> str:
    return executed("take_union", paths, items)


def take_model(paths: Nested | None = None, items: Nested | None = None) -> str:
    return executed("take_model", paths, items)


def take_json(paths: Json = None, items: Json = None) -> str:
    return executed("take_json", paths, items)


def take_yaml(paths: Yaml = None, items: Yaml = None) -> str:
    return executed("take_yaml", paths, items)


def take_literal(paths: Literal = None, items: Literal = None) -> str:
    return executed("take_literal", paths, items)


for take in [take_list, take_texts, take_map, take_union, take_model, take_json, take_yaml, take_literal]:
    server.tool()(take)

if sys.argv[1:] == ["fastmcp"]:
    server.run(show_banner=False, log_level="ERROR")
else:
    server.run("stdio")
