#!/usr/bin/env python3
"""SSH through Durward, beside AsyncSSH and OpenSSH's own clients with a kept connection, against a real sshd on loopback.

    scripts/bench_ssh.py --durward FILE [--out FILE.md] [--quick]

All take turns in one run: a warm command, commands by 16 workers, a command and a file over a line of 100 ms. Each answer is checked. The
long line is a relay of this script's own, because not every kernel has netem. AsyncSSH comes with scripts/setup-peers; without it its column
says so. Needs sshd, ssh and sftp.
"""

import argparse
import asyncio
import hashlib
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
PEER = ROOT / ".cache/peers/asyncssh/bin/python"
RTT_MS = 100.0
WORKERS = 16
FILE_BYTES = 64 << 20
# A program for every client: Durward has the login shell run programs only, and its own `echo` costs a shell no process.
PROGRAM = "/bin/echo"
HOSTS, BUSY = 1_000, 50
BATCH = ["sleep 0.1", "sleep 0.2", "sleep 0.3", "sleep 0.4", "sleep 0.5"]
# What the design promises.
WARM_MS, PER_SECOND, RTTS, BATCH_RATIO, REFUSED_MS, MEMORY_MIB = 2.5, 700, 1.1, 1.5, 1.0, 60


def inside_environment():
    """Goes on in the environment that has AsyncSSH, where that is installed."""
    if PEER.exists() and pathlib.Path(sys.prefix).resolve() != PEER.parent.parent.resolve():
        os.execv(PEER, [str(PEER), *sys.argv])


inside_environment()

import bench_clients  # noqa: E402

try:
    import asyncssh
except ImportError:
    asyncssh = None


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def reachable(port):
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"error: nothing listens on port {port}")


class Sshd:
    """A real sshd that takes one key of whoever runs this."""

    def __init__(self, place):
        self.place, self.port = place, free_port()
        self.user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True)
        if self.user == "root":
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        told = {
            "Port": self.port, "ListenAddress": "127.0.0.1", "HostKey": place / "host", "PidFile": "none", "AuthorizedKeysFile": place / "user.pub",
            "StrictModes": "no", "UseDNS": "no", "UsePAM": "no", "PermitRootLogin": "yes", "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no", "MaxStartups": "500:30:1000", "MaxSessions": 64, "AcceptEnv": "LANG LC_*", "Subsystem": "sftp internal-sftp",
            # A shell reads the start file of its user: what that does is not measured.
            "SetEnv": f"HOME={place}",
        }
        (place / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in told.items()))
        words = [shutil.which("sshd", path="/usr/sbin:/usr/bin:/usr/local/sbin"), "-D", "-f", str(place / "sshd_config"), "-E", str(place / "sshd.log")]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        reachable(self.port)

    def known(self, ports):
        key = (self.place / "host.pub").read_text()
        (self.place / "known_hosts").write_text("".join(f"[127.0.0.1]:{port} {key}" for port in ports))

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


class Relay:
    """A line on which every byte takes half of the round trip, in each direction."""

    def __init__(self, to, delay_s):
        self.to, self.delay_s, self.port = to, delay_s, free_port()
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        reachable(self.port)

    async def serve(self):
        server = await asyncio.start_server(self.join, "127.0.0.1", self.port, limit=1 << 20)
        await server.serve_forever()

    async def join(self, reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to, limit=1 << 20)
        for one in (writer, far_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.gather(self.move(reader, far_writer), self.move(far_reader, writer))

    async def move(self, reader, writer):
        """Moves bytes; those on their way are at most 64 MiB in pieces of 256 KiB."""
        under_way = asyncio.Queue(256)

        async def deliver():
            while (one := await under_way.get())[1]:
                await asyncio.sleep(one[0] - time.monotonic())
                writer.write(one[1])
                await writer.drain()
            writer.close()

        delivering = asyncio.create_task(deliver())
        try:
            while data := await reader.read(1 << 18):
                await under_way.put((time.monotonic() + self.delay_s, data))
        except OSError:
            pass
        await under_way.put((0.0, b""))
        await asyncio.gather(delivering, return_exceptions=True)


class Durward:
    """One client of Durward, with a session at a host: over HTTP, or over standard streams of a Durward of its own."""

    def __init__(self, server, host):
        self.client = server.client()
        self.session = self.client.post("/ssh_connect", host=host)[1]["session_id"]

    def run(self, line):
        """Milliseconds and standard output."""
        took, told = self.client.post("/ssh_run_command", session_id=self.session, command=line)
        return took, told["stdout"]

    def moved(self, tool, path, local):
        arguments = {"session_id": self.session, "path": str(path), "local": local, "overwrite": True}
        took, told = self.client.request("tools/call", name=tool, arguments=arguments)
        if told.get("isError"):
            raise SystemExit(f"error: {tool}: {told}")
        return took / 1000, told["structuredContent"]["sha256"]

    def refused(self, line):
        """Milliseconds to a refusal; fails where there is none."""
        message = self.client.message("tools/call", {"name": "ssh_run_command", "arguments": {"session_id": self.session, "command": line}})
        took, told = self.client.exchange(message)
        if "refused-0" not in json.dumps(told):
            raise SystemExit(f"error: {line} was not refused: {told}")
        return took


class OpenSsh:
    """OpenSSH's clients over a connection that its master keeps."""

    def __init__(self, sshd, port):
        self.socket = sshd.place / f"master-{port}"
        self.words = ["-F", "none", "-o", f"ControlPath={self.socket}", "-o", f"UserKnownHostsFile={sshd.place / 'known_hosts'}", "-i", str(sshd.place / "user"), "-o", "BatchMode=yes"]
        self.to = f"{sshd.user}@127.0.0.1"
        self.port = port
        # The master's streams are not ours to wait for.
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["ssh", *self.words, "-p", str(port), "-M", "-f", "-N", self.to], check=True, **quiet)

    def run(self, line):
        began = time.perf_counter()
        told = subprocess.run(["ssh", *self.words, "-p", str(self.port), self.to, line], capture_output=True, text=True, check=True)
        return (time.perf_counter() - began) * 1000, told.stdout

    def moved(self, verb, source, target):
        began = time.perf_counter()
        subprocess.run(["sftp", "-q", *self.words, "-P", str(self.port), "-b", "-", self.to], input=f"{verb} {source} {target}\n", text=True, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    def stop(self):
        subprocess.run(["ssh", *self.words, "-p", str(self.port), "-O", "exit", self.to], capture_output=True, check=False)


class AsyncSsh:
    """AsyncSSH on an event loop of its own, with a kept connection."""

    def __init__(self, sshd, port):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.asked = {"port": port, "username": sshd.user, "client_keys": [str(sshd.place / "user")], "known_hosts": str(sshd.place / "known_hosts"), "config": None}
        self.connection = self.wait(asyncssh.connect("127.0.0.1", **self.asked))

    def wait(self, coroutine):
        async def awaited():
            return await coroutine

        return asyncio.run_coroutine_threadsafe(awaited(), self.loop).result(bench_clients.WAIT_S)

    async def timed(self, line):
        began = time.perf_counter()
        told = await self.connection.run(line, check=True)
        return (time.perf_counter() - began) * 1000, told.stdout

    def run(self, line):
        return self.wait(self.timed(line))

    def per_second(self, seconds):
        """Commands by as many tasks as there are workers."""

        async def work(until, number):
            done = 0
            while time.perf_counter() < until:
                word = f"w{number}x{done}"
                check(word, (await self.timed(f"{PROGRAM} {word}"))[1])
                done += 1
            return done

        async def all_of_them():
            began = time.perf_counter()
            done = await asyncio.gather(*(work(began + seconds, number) for number in range(WORKERS)))
            return sum(done) / (time.perf_counter() - began)

        return self.wait(all_of_them())

    def moved(self, verb, source, target):
        async def move():
            async with self.connection.start_sftp_client() as sftp:
                began = time.perf_counter()
                await getattr(sftp, verb)(str(source), str(target))
                return time.perf_counter() - began

        return self.wait(move())


def check(word, output):
    if output.strip() != word:
        raise SystemExit(f"error: {word!r} was to come back, and {output!r} came")


def one(client, number):
    """A command whose answer nobody can know before."""
    word = f"w{number}x{time.perf_counter_ns()}"
    took, output = client.run(f"{PROGRAM} {word}")
    check(word, output)
    return took


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def interleaved(clients, times):
    """Milliseconds of each client's commands, in turns, whose order is another one in each round: what a command leaves sshd to do is then no one's alone."""
    order = random.Random(1)
    took = {name: [] for name in clients}
    for client in clients.values():
        for number in range(5):
            one(client, number)
    for number in range(times):
        for name, client in order.sample(list(clients.items()), len(clients)):
            took[name].append(one(client, number))
    return took


def by_threads(clients, seconds):
    """Commands a second by these clients, each on a thread."""
    done, failed = [0] * len(clients), []
    began = time.perf_counter()

    def work(at, client):
        try:
            while time.perf_counter() < began + seconds:
                one(client, at)
                done[at] += 1
        except BaseException as error:  # It ends the run, and not this thread only.
            failed.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"error: a worker failed: {failed[0]}")
    return sum(done) / (time.perf_counter() - began)


def rates(workers, peer, master, seconds, rounds):
    told = {"durward": [], "asyncssh": [], "openssh": []}
    for _ in range(rounds):
        told["durward"].append(by_threads(workers, seconds))
        if peer:
            told["asyncssh"].append(peer.per_second(seconds))
        told["openssh"].append(by_threads([master] * WORKERS, seconds))
    return {name: statistics.median(values) if values else None for name, values in told.items()}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Files:
    """A file that goes to the host and back, by each client in turn."""

    def __init__(self, place, size):
        self.place, self.size = place, size
        self.drop, self.far = place / "drop", place / "far"
        self.far.mkdir()
        # No two blocks are alike, so that nothing is saved on the way.
        (self.drop / "big").write_bytes(os.urandom(size))
        self.sha256 = digest(self.drop / "big")

    def held(self, path):
        if digest(path) != self.sha256:
            raise SystemExit(f"error: {path} is not the file that was sent")
        path.unlink()

    def durward(self, client):
        put, said = client.moved("ssh_put", self.far / "d", "drop/big")
        got, again = client.moved("ssh_get", self.far / "d", "drop/back")
        if {said, again} != {self.sha256}:
            raise SystemExit("error: a transfer told another SHA-256")
        self.held(self.far / "d")
        self.held(self.drop / "back")
        return put, got

    def other(self, client):
        put = client.moved("put", self.drop / "big", self.far / "o")
        got = client.moved("get", self.far / "o", self.place / "back")
        self.held(self.far / "o")
        self.held(self.place / "back")
        return put, got

    def rates(self, clients, rounds):
        """MiB a second there and back: the median of the rounds."""
        told = {name: [] for name in clients}
        for _ in range(rounds):
            for name, client in clients.items():
                times = self.durward(client) if isinstance(client, Durward) else self.other(client)
                told[name].append(times)
        mib = self.size / (1 << 20)
        return {name: [mib / statistics.median(pair) for pair in zip(*pairs)] for name, pairs in told.items()}


def batch(client):
    """How long five commands take beside the slowest of them, both in milliseconds."""
    alone = statistics.median(client.run(BATCH[-1])[0] for _ in range(3))
    took, told = client.client.post("/ssh_batch_commands", session_id=client.session, commands=BATCH)
    if len(told["results"]) != len(BATCH) or not all(result["success"] for result in told["results"]):
        raise SystemExit(f"error: a command of the batch failed: {told}")
    return took, alone


def memory(server):
    """MiB of the server while 50 of its 1,000 hosts run a command."""
    clients = [Durward(server, f"many{number}") for number in range(BUSY)]
    threads = [threading.Thread(target=client.run, args=("sleep 2",)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(1)
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    for thread in threads:
        thread.join()
    return int(resident.split()[1]) / 1024


def hosts_file(place, sshd, relay):
    entry = {"address": "127.0.0.1", "credential": "me"}
    hosts = {"near": {**entry, "port": sshd.port}, "far": {**entry, "port": relay.port}}
    hosts |= {f"many{number}": {**entry, "port": sshd.port} for number in range(HOSTS)}
    told = {
        "known_hosts": ["known_hosts"], "credentials": {"me": {"user": sshd.user, "key": "user"}}, "hosts": hosts,
        "local_folders": {"drop": "drop"}, "limits": {"sessions_max": 200},
    }
    (place / "ssh_hosts.yaml").write_text(json.dumps(told) + "\n")


def cell(value, digits=2):
    return "–" if value is None else f"{value:,.{digits}f}"


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, own, asyncssh_, openssh, goal, passes, digits=2):
        verdict = "" if passes is None else "PASS" if passes else "SHORT"
        self.rows.append(f"| {what} | {cell(own, digits)} | {cell(asyncssh_, digits)} | {cell(openssh, digits)} | {goal} | {verdict} |")


def near(table, near_clients, workers, quick):
    took = interleaved(near_clients, 40 if quick else 400)
    for way, who in (("over standard streams", "streams"), ("over HTTP", "durward")):
        for share, name in ((0.5, "p50"), (0.99, "p99")):
            own, peer, master = (percentile(took[key], share) if key in took else None for key in (who, "asyncssh", "openssh"))
            goal = f"≤ {WARM_MS} ms, and AsyncSSH's" if share == 0.5 else ""
            passes = own <= WARM_MS and (peer is None or own <= peer) if share == 0.5 else None
            table.add(f"warm command {way}, {name}, ms", own, peer, master, goal, passes)
    told = rates(workers, near_clients.get("asyncssh"), near_clients["openssh"], 1 if quick else 5, 1 if quick else 3)
    own = told["durward"]
    table.add(f"commands a second, {WORKERS} workers", own, told["asyncssh"], told["openssh"], f"≥ {PER_SECOND}", own >= PER_SECOND, 0)


def far(table, far_clients, quick):
    took = interleaved(far_clients, 5 if quick else 20)
    own, peer, master = (statistics.median(took[key]) / RTT_MS if key in took else None for key in ("durward", "asyncssh", "openssh"))
    table.add(f"warm command at {RTT_MS:.0f} ms, round trips", own, peer, master, f"≤ {RTTS}", own <= RTTS)


def transfers(table, files, at, clients, quick):
    told = files.rates(clients, 1 if quick else 3)
    for way, name in enumerate(("put", "get")):
        own, peer, master = (told[key][way] if key in told else None for key in ("durward", "asyncssh", "openssh"))
        table.add(f"SFTP {name}, {files.size >> 20} MiB at {at} ms, MiB/s", own, peer, master, "≥ sftp", own >= master, 1)


def measure(durward, place, quick):
    sshd = Sshd(place)
    relay = Relay(sshd.port, RTT_MS / 2000)
    sshd.known([sshd.port, relay.port])
    (place / "drop").mkdir()
    hosts_file(place, sshd, relay)
    told = {"builtin": "ssh", "hosts": str(place / "ssh_hosts.yaml")}
    refused = [{"tool_name": "ssh_*", "path_pattern": "/etc/shadow"}]
    server = bench_clients.Server(durward, place, transport="mcp-http", server=told, refused=refused)
    (place / "streams").mkdir()
    streams = bench_clients.Streams(durward, place / "streams", server=told, refused=refused)
    table, masters = Table(), []
    try:
        clients = {}
        for at, port in (("near", sshd.port), ("far", relay.port)):
            masters.append(OpenSsh(sshd, port))
            clients[at] = {"durward": Durward(server, at), "openssh": masters[-1]}
            if asyncssh:
                clients[at]["asyncssh"] = AsyncSsh(sshd, port)
        own = clients["near"]["durward"]
        with_streams = {**clients["near"], "streams": Durward(streams, "near")}
        near(table, with_streams, [Durward(server, "near") for _ in range(WORKERS)], quick)
        far(table, clients["far"], quick)
        took, alone = batch(own)
        table.add("batch of five beside its slowest, ratio", took / alone, None, None, f"≤ {BATCH_RATIO}", took <= BATCH_RATIO * alone)
        refused = statistics.median(own.refused("cat /etc/shadow") for _ in range(20 if quick else 200))
        table.add("refused command, p50, ms", refused, None, None, f"≤ {REFUSED_MS:g}", refused <= REFUSED_MS)
        files = Files(place, FILE_BYTES >> (3 if quick else 0))
        transfers(table, files, 0, clients["near"], quick)
        transfers(table, files, int(RTT_MS), clients["far"], quick)
        resident = memory(server)
        table.add(f"{HOSTS:,} hosts configured, {BUSY} busy, MiB resident", resident, None, None, f"≤ {MEMORY_MIB}", resident <= MEMORY_MIB, 1)
    finally:
        for master in masters:
            master.stop()
        streams.stop()
        server.stop()
        sshd.stop()
    return table.rows


def version(words):
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    return (told.stdout + told.stderr).strip().split(",")[0].split("\n")[0]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--durward", type=pathlib.Path, required=True, help="the program")
    arguments.add_argument("--out", type=pathlib.Path, help="write the section there instead of to standard output")
    arguments.add_argument("--quick", action="store_true", help="few repetitions and a small file: whether it works, and no figure to quote")
    chosen = arguments.parse_args()
    with bench_clients.temporary() as place:
        rows = measure(chosen.durward, pathlib.Path(place), chosen.quick)
    peer = f"AsyncSSH {asyncssh.__version__}" if asyncssh else "AsyncSSH absent: scripts/setup-peers installs it"
    text = "\n".join([
        "## SSH",
        "",
        f"Real sshd on loopback ({version(['ssh', '-V'])}), {peer}; all with a kept connection, in turns in one run, each answer checked. A command is `{PROGRAM}`, a program rather than the word of a shell. Durward is called over HTTP, and for the warm command over standard streams too, with its policy and its journal on;"
        f" `ssh -S` and `sftp` are a process for each command, over the connection of a master. The long line is a relay that delays each direction by {RTT_MS / 2:.0f} ms."
        + (" **Quick run: no figure to quote.**" if chosen.quick else ""),
        "",
        "| what | Durward | AsyncSSH | `ssh -S`, `sftp` | goal | |",
        "|---|--:|--:|--:|---|---|",
        *rows,
        "",
    ])
    if chosen.out:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
