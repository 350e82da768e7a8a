"""What Python reads in frames: lines as text mode cuts them, a line of standard output each."""

import json
import sys
from io import TextIOWrapper


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def members(value: object) -> dict:
    return value if isinstance(value, dict) else {}


# As the official Python SDK opens it: lines end at CR, LF and CR LF.
for line in TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"):
    try:
        frame = members(json.loads(line))
    except ValueError as error:
        print(json.dumps({"error": str(error)}))
        continue
    params = members(frame.get("params"))
    arguments = members(params.get("arguments"))
    read = {
        "id": json.dumps(frame.get("id")),
        "method": text(frame.get("method")),
        "name": text(params.get("name")),
        "path": text(arguments.get("path")),
        "text": text(arguments.get("text")),
    }
    print(json.dumps(read))
