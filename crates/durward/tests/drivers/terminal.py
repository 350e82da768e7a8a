"""Runs a command in a pseudo-terminal and goes through steps, as a person at the screen would.

    terminal.py COLUMNS ROWS STEPS -- COMMAND...

STEPS is a JSON list: ["wait", TEXT] until the screen shows it, ["gone", TEXT] until it does not, ["keys", TEXT] types,
["pause", MS] looks on,
["touch", FILE] makes a file, ["exists", FILE] waits for one, ["exit", CODE] waits for the end. The last screen is printed.
"""
import fcntl, json, os, pty, re, select, struct, sys, termios, time

PATIENCE_S = 60
columns, rows, steps = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
command = sys.argv[sys.argv.index("--") + 1 :]
pid, master = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(command[0], command)
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

screen = [[" "] * columns for _ in range(rows)]
at = [0, 0]
rest = ""
SEQUENCE = re.compile(r"\x1b\[([?>=]?[0-9;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]|\x1b\][^\x07]*\x07")


def show(text):
    """Puts output on the screen: cursor positions, clearing, lines; colours are left out."""
    global rest
    text = rest + text
    rest = ""
    while text:
        if text[0] == "\x1b":
            found = SEQUENCE.match(text)
            if not found:
                rest = text
                return
            act(found.group(1) or "", found.group(2) or "")
            text = text[found.end() :]
            continue
        c, text = text[0], text[1:]
        if c == "\r":
            at[1] = 0
        elif c == "\n":
            if at[0] + 1 == rows:
                screen.append([" "] * columns)
                del screen[0]
            else:
                at[0] += 1
        elif c == "\b":
            at[1] = max(0, at[1] - 1)
        elif c >= " ":
            if at[1] < columns:
                screen[at[0]][at[1]] = c
            at[1] += 1


def act(numbers, letter):
    parts = [int(part) if part.isdigit() else 0 for part in numbers.split(";")]
    if letter in "Hf":
        at[0] = min(max((parts[0] or 1) - 1, 0), rows - 1)
        at[1] = min(max((parts[1] if len(parts) > 1 else 1) - 1, 0), columns - 1)
    elif letter == "J":
        for row in screen:
            row[:] = [" "] * columns
    elif letter == "K":
        screen[at[0]][at[1] :] = [" "] * (columns - at[1])
    elif letter == "n" and parts[0] == 6:
        os.write(master, f"\x1b[{at[0] + 1};{at[1] + 1}R".encode())


def shown():
    return "\n".join("".join(row).rstrip() for row in screen)


def read():
    """Reads what there is; False at the end."""
    ready, _, _ = select.select([master], [], [], 0.02)
    if not ready:
        return True
    try:
        data = os.read(master, 65536)
    except OSError:
        return False
    show(data.decode("utf-8", "replace"))
    return bool(data)


def until(what, is_so):
    end = time.monotonic() + PATIENCE_S
    open_ = True
    while not is_so():
        if time.monotonic() > end or not open_:
            sys.exit(f"never: {what}\n{shown()}")
        open_ = read()


for name, value in steps:
    if name == "wait":
        until(f"wait {value}", lambda: value in shown())
    elif name == "gone":
        until(f"gone {value}", lambda: value not in shown())
    elif name == "keys":
        os.write(master, value.encode())
    elif name == "pause":
        end = time.monotonic() + value / 1000
        until(f"pause {value}", lambda: time.monotonic() >= end)
    elif name == "touch":
        open(value, "w").close()
    elif name == "exists":
        until(f"exists {value}", lambda: os.path.exists(value))
    elif name == "exit":
        last = shown()
        while read():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code != value:
            sys.exit(f"exit code {code}\n{shown()}")
        print(last)
        sys.exit(0)
print(shown())
