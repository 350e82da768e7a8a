"""Tries to put other rules in the place of those below a home; writes the result of each."""

import ctypes
import os
import sys

HOME, NAME, OUTSIDE = sys.argv[1:4]
libc = ctypes.CDLL(None, use_errno=True)
FORGED = '{"rules":[{"id":"forged","effect":"allow","conditions":{"mcp_method":"*"}}]}'
RULES = "/.config/durward/policy.json"
CONFIG, OURS, STATE = HOME + "/.config", HOME + "/.config/durward", HOME + "/.local/state"
WORK = f"{HOME}/work/{NAME}"
AT, MS_BIND, MS_REC, MS_MOVE, MS_REMOUNT, DETACH, NOFOLLOW = -100, 4096, 16384, 8192, 32, 2, 8
NEWNS, NEWUSER = 0x20000, 0x10000000
tries = []


def checked(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def call(number, *args):
    return checked(libc.syscall(ctypes.c_long(number), *args))


def b(text):
    return text.encode()


def only_inside():
    """A mount in the namespace of the test would outlive it."""
    if os.readlink("/proc/self/ns/mnt") == OUTSIDE:
        raise PermissionError("not in the namespace of the test")


def mount(source, target, kind, flags, data=None):
    only_inside()
    checked(libc.mount(b(source), b(target), kind and b(kind), ctypes.c_ulong(flags), data and b(data)))


def umount(target, flags):
    only_inside()
    checked(libc.umount2(b(target), flags))


def exchange(one, other):
    call(316, AT, b(one), AT, b(other), 2)


def folder(name):
    path = f"{WORK}/{name}"
    os.makedirs(path, exist_ok=True)
    return path


def forge(home):
    """Writes rules below what may be the home, and says so only where they could be written."""
    os.makedirs(home + "/.config/durward", exist_ok=True)
    with open(home + RULES, "w") as out:
        out.write(FORGED)


def write(path):
    with open(path, "w") as out:
        out.write(FORGED)


def tree(name):
    """A directory that could stand for one on the way."""
    top = folder(name)
    for path in ("durward", ".config/durward", "state/durward", "rules"):
        os.makedirs(f"{top}/{path}", exist_ok=True)
    for path in ("durward/policy.json", "policy.json", ".config/durward/policy.json", "rules/rules.json", "tell"):
        write(f"{top}/{path}")
    return top


def attempt(name):
    def add(run):
        tries.append((name, run))
        return run

    return add


STEPS = [CONFIG, OURS, HOME + "/.local", STATE, STATE + "/durward", HOME + "/bin", HOME + "/dotfiles",
         HOME + "/dotfiles/rules", HOME + "/linked", HOME]
for number, step in enumerate(STEPS):

    def move(step=step, number=number):
        os.rename(step, f"{WORK}/moved{number}" if step != HOME else HOME + ".moved")
        os.makedirs(step, exist_ok=True)
        forge(HOME)

    def swap(step=step, number=number):
        exchange(step, tree(f"swapped{number}"))

    def over(step=step, number=number):
        empty = folder(f"empty{number}")
        os.rename(empty, step)

    def beside(step=step):
        os.rename(step, step + ".old")
        os.symlink(tree("target"), step)

    def lazily(step=step):
        umount(step, DETACH)
        forge(HOME)

    def plainly(step=step):
        umount(step, NOFOLLOW)
        forge(HOME)

    for what, run in (("rename", move), ("exchange", swap), ("rename over", over), ("link for", beside),
                      ("unmount", plainly), ("unmount lazily", lazily)):
        attempt(f"{what} {step}")(run)


@attempt("write the rules")
def _():
    write(HOME + RULES)


@attempt("replace the rules")
def _():
    write(WORK + "/rules")
    os.rename(WORK + "/rules", HOME + RULES)


@attempt("make a configuration")
def _():
    write(OURS + "/durward.yaml")


@attempt("hard link to the rules")
def _():
    os.link(HOME + RULES, WORK + "/hard")
    write(WORK + "/hard")


@attempt("hard link to linked rules")
def _():
    os.link(HOME + "/dotfiles/rules/rules.json", WORK + "/hard2")
    write(WORK + "/hard2")


@attempt("hard link over linked rules")
def _():
    write(WORK + "/rules2")
    os.unlink(HOME + "/linked/rules/rules.json")
    os.link(WORK + "/rules2", HOME + "/linked/rules/rules.json")


@attempt("write the notifier")
def _():
    write(HOME + "/bin/tell")


@attempt("replace the notifier")
def _():
    write(WORK + "/tell")
    os.rename(WORK + "/tell", HOME + "/bin/tell")


@attempt("replace the link")
def _():
    os.symlink(tree("linked"), WORK + "/link")
    os.rename(WORK + "/link", HOME + "/linked")


@attempt("remove the link")
def _():
    os.unlink(HOME + "/linked")
    os.symlink(tree("linked2"), HOME + "/linked")


@attempt("remove the configuration")
def _():
    os.rmdir(OURS)
    forge(HOME)


@attempt("a relative path")
def _():
    write("durward/policy.json")


@attempt("a file of the working directory")
def _():
    write("policy.json")


@attempt("a relative path through the parent")
def _():
    write("../.config/durward/policy.json")


@attempt("fchdir")
def _():
    here = os.open(".", os.O_RDONLY)
    os.chdir("/")
    os.fchdir(here)
    write("durward/policy.json")


@attempt("a path of the working directory in proc")
def _():
    write("/proc/self/cwd/durward/policy.json")


@attempt("openat below an open directory")
def _():
    home = os.open(HOME, os.O_RDONLY)
    out = os.open(".config/durward/policy.json", os.O_WRONLY | os.O_TRUNC, dir_fd=home)
    os.write(out, b(FORGED))


for number, resolve in ((1, 0x01), (2, 0x08), (3, 0x10), (4, 0x02)):

    @attempt(f"openat2 {resolve:#x}")
    def _(resolve=resolve):
        home = os.open(HOME, os.O_PATH)
        how = (ctypes.c_uint64 * 3)(os.O_WRONLY | os.O_TRUNC, 0, resolve)
        out = call(437, home, b(".config/durward/policy.json"), ctypes.byref(how), 24)
        os.write(out, b(FORGED))


@attempt("open_by_handle_at")
def _():
    class Handle(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_uint), ("kind", ctypes.c_int), ("data", ctypes.c_ubyte * 128)]

    handle, mount_id = Handle(128, 0), ctypes.c_int()
    checked(libc.name_to_handle_at(AT, b(HOME), ctypes.byref(handle), ctypes.byref(mount_id), 0))
    top = os.open("/", os.O_RDONLY)
    home = checked(libc.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY))
    out = os.open(".config/durward/policy.json", os.O_WRONLY | os.O_TRUNC, dir_fd=home)
    os.write(out, b(FORGED))


for where, source in (("the root", "/"), ("the home", HOME), ("the directory above", CONFIG)):

    @attempt(f"bind {where} elsewhere")
    def _(source=source):
        to = folder("bound" + source.replace("/", "_"))
        mount(source, to, None, MS_BIND)
        write(to + (HOME + RULES)[len(source.rstrip("/")):])

    @attempt(f"bind all of {where} elsewhere and unmount")
    def _(source=source):
        to = folder("all" + source.replace("/", "_"))
        mount(source, to, None, MS_BIND | MS_REC)
        inside = to + (HOME + RULES)[len(source.rstrip("/")):]
        umount(os.path.dirname(inside), DETACH)
        write(inside)

    @attempt(f"clone a tree of {where}")
    def _(source=source):
        clone = call(428, AT, b(source), 1)
        out = os.open((HOME + RULES)[len(source.rstrip("/")) + 1:], os.O_WRONLY | os.O_TRUNC, dir_fd=clone)
        os.write(out, b(FORGED))

    @attempt(f"overlay of {where}")
    def _(source=source):
        to = folder("merged" + source.replace("/", "_"))
        mount("overlay", to, "overlay", 0, f"lowerdir={folder('low')},upperdir={source},workdir={folder('w')}")
        write(to + (HOME + RULES)[len(source.rstrip("/")):])


@attempt("move the cover")
def _():
    mount(OURS, folder("cover"), None, MS_MOVE)
    forge(HOME)


@attempt("make the cover writable")
def _():
    mount("none", OURS, None, MS_REMOUNT | MS_BIND)
    write(HOME + RULES)


@attempt("make the notifier writable")
def _():
    mount("none", HOME + "/bin/tell", None, MS_REMOUNT | MS_BIND)
    write(HOME + "/bin/tell")


@attempt("chroot and out again")
def _():
    os.chroot(folder("jail"))
    for _ in range(64):
        os.chdir("..")
    write("." + HOME + RULES)


@attempt("pivot_root")
def _():
    only_inside()
    call(155, b(HOME), b(folder("old")))
    write("/.config/durward/policy.json")


for number, run in enumerate((lambda: umount(OURS, DETACH), lambda: umount(CONFIG, DETACH),
                              lambda: mount(HOME, folder("nested"), None, MS_BIND))):

    @attempt(f"further namespaces {number}")
    def _(run=run):
        checked(libc.unshare(NEWUSER | NEWNS))
        run()
        for home in (HOME, f"{WORK}/nested"):
            forge(home)


@attempt("namespaces of other processes")
def _():
    entered = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            target = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
            checked(libc.setns(target, NEWNS))
            write(HOME + RULES)
            entered += 1
        except OSError:
            pass
    if not entered:
        raise PermissionError("none")


@attempt("roots and directories of other processes")
def _():
    written = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        ways = [f"/proc/{pid}/root{HOME}{RULES}"]
        for below in ("/durward/policy.json", "/policy.json"):
            ways.append(f"/proc/{pid}/cwd{below}")
        for way in ways:
            try:
                # Files of other tests are none of ours.
                if "/cwd/" in way and not os.readlink(f"/proc/{pid}/cwd").startswith(HOME):
                    continue
                os.write(os.open(way, os.O_WRONLY), b(FORGED))
                written += 1
            except OSError:
                pass
    if not written:
        raise PermissionError("none")


@attempt("a second process that swaps")
def _():
    other = tree("racing")
    child = os.fork()
    if child == 0:
        for _ in range(2000):
            for step in (CONFIG, OURS, HOME + "/linked"):
                try:
                    exchange(step, other)
                except OSError:
                    pass
        os._exit(0)
    done = None
    for _ in range(2000):
        try:
            write(HOME + RULES)
            done = True
        except OSError as error:
            done = done or error
    os.waitpid(child, 0)
    if done is not True:
        raise done


# These change what this process sees, so they come last.
@attempt("mount over a directory above")
def _():
    mount("none", CONFIG, "tmpfs", 0)
    forge(HOME)


@attempt("bind a tree over the home")
def _():
    mount(tree("home"), HOME, None, MS_BIND)
    forge(HOME)


os.makedirs(WORK, exist_ok=True)
# Each try in a process of its own: what it does to itself is not the next one's.
report = os.open(f"{HOME}/out/{NAME}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
for name, run in tries:
    child = os.fork()
    if child == 0:
        try:
            run()
            result = "done"
        except BaseException as error:
            result = f"refused: {error}"
        os.write(report, b(f"{name}: {result}\n"))
        os._exit(0)
    os.waitpid(child, 0)
