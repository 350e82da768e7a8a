#!/usr/bin/env python3
"""Where a program spends its time: perf's samples as a flame graph and as the 25 functions at the top.

    scripts/bench_profile.py fold < TEXT OF perf script

`fold` writes one line for each stack: its functions from the first to the last, a blank, and how often it was seen. The benchmark of
simulations uses the rest: `scripts/bench_simulation.py run --profile`. Needs Python 3.11 and perf.
"""

import html
import pathlib
import re
import shutil
import signal
import subprocess
import sys

# Samples a second; a prime, so that no timer keeps step with it.
RATE_HZ = 97
STACK_BYTES = 8192
TOP = 25
WIDTH, ROW, SMALLEST = 1200.0, 16, 0.6
FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<name>.+?)(\+0x[0-9a-f]+)? \((?P<file>.*)\)$")
# The hash at the end of a Rust name.
HASH = re.compile(r"::h[0-9a-f]{16}$")


class Recorder:
    """perf beside a process and the children that it starts."""

    def __init__(self, pid, file):
        if shutil.which("perf") is None:
            raise SystemExit("error: perf is not installed (Debian: linux-perf); measure without --profile")
        self.file = pathlib.Path(file)
        words = ["perf", "record", "-F", str(RATE_HZ), "--call-graph", f"dwarf,{STACK_BYTES}", "-p", str(pid), "-o", str(self.file)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def stop(self):
        """Ends the recording; gives the stacks and how often each was seen."""
        self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=120)
        if not self.file.exists() or self.file.stat().st_size == 0:
            raise SystemExit(f"error: perf recorded nothing: {said.strip()}\nhint: sysctl kernel.perf_event_paranoid=1 lets users record")
        text = subprocess.run(["perf", "script", "--no-inline", "-i", str(self.file)], capture_output=True, text=True, errors="replace", check=True).stdout
        self.file.unlink()
        return folded(text)


def folded(text):
    """The stacks in what `perf script` prints, each from its first function to its last, and how often it was seen."""
    stacks, frames = {}, []
    for line in [*text.splitlines(), ""]:
        found = FRAME.match(line)
        if found:
            name = HASH.sub("", found["name"])
            frames.append(name if name != "[unknown]" else f"[{pathlib.PurePath(found['file']).name or 'unknown'}]")
        elif not line.strip() and frames:
            stack = tuple(reversed(frames))
            stacks[stack] = stacks.get(stack, 0) + 1
            frames = []
    return stacks


def lines(stacks):
    return [f"{';'.join(name.replace(';', ':') for name in stack)} {count}" for stack, count in sorted(stacks.items())]


def top(stacks, most=TOP):
    """The functions that were seen most often at the end of a stack, and in how many stacks each stood at all."""
    own, within, total = {}, {}, sum(stacks.values())
    for stack, count in stacks.items():
        own[stack[-1]] = own.get(stack[-1], 0) + count
        for name in set(stack):
            within[name] = within.get(name, 0) + count
    first = sorted(own.items(), key=lambda item: (-item[1], item[0]))[:most]
    percent = lambda count: round(100 * count / total, 2)
    return [{"function": name, "samples": count, "percent": percent(count), "percentWithCalled": percent(within[name])} for name, count in first]


def flame(stacks, title):
    """A flame graph as SVG: the width of a box is how often its function stood there."""
    root = {"name": "all", "count": 0, "below": {}}
    for stack, count in stacks.items():
        at = root
        at["count"] += count
        for name in stack:
            at = at["below"].setdefault(name, {"name": name, "count": 0, "below": {}})
            at["count"] += count
    boxes, scale = [], WIDTH / max(root["count"], 1)

    def draw(node, left, depth):
        width = node["count"] * scale
        if width < SMALLEST:
            return depth
        boxes.append((node, left, depth, width))
        deepest = depth
        for child in sorted(node["below"].values(), key=lambda one: one["name"]):
            deepest = max(deepest, draw(child, left, depth + 1))
            left += child["count"] * scale
        return deepest

    sys.setrecursionlimit(10_000)
    height = (draw(root, 0.0, 0) + 2) * ROW
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{height}" font-family="monospace" font-size="11">', f"<title>{html.escape(title)}</title>"]
    for node, left, depth, width in boxes:
        share = f"{node['name']}: {node['count']} samples, {100 * node['count'] / max(root['count'], 1):.2f} %"
        hue = 20 + sum(node["name"].encode()) % 35
        text = node["name"][: int(width / 6.7)] if width > 20 else ""
        out.append(
            f'<g><title>{html.escape(share)}</title><rect x="{left:.1f}" y="{height - (depth + 2) * ROW}" width="{width:.1f}" height="{ROW - 1}" '
            f'fill="hsl({hue},85%,65%)"/><text x="{left + 2:.1f}" y="{height - (depth + 2) * ROW + 11}">{html.escape(text)}</text></g>'
        )
    return "\n".join([*out, "</svg>", ""])


def write(stacks, stem, title, most=TOP):
    """Writes the flame graph and the folded stacks under this name; gives what the artefact says of them, with so many functions."""
    stem = pathlib.Path(stem)
    stem.parent.mkdir(parents=True, exist_ok=True)
    graph, text = stem.with_suffix(".svg"), stem.with_suffix(".folded")
    graph.write_text(flame(stacks, title))
    text.write_text("\n".join(lines(stacks)) + "\n")
    return {"samples": sum(stacks.values()), "flameGraph": graph.name, "stacks": text.name, "top": top(stacks, most)}


if __name__ == "__main__":
    if sys.argv[1:] != ["fold"]:
        raise SystemExit(__doc__)
    print("\n".join(lines(folded(sys.stdin.read()))))
