"""An MCP server for tests that misbehaves on request. Used by `tests/mcp.rs`; needs nothing but Python 3.

Its first argument says how it is, its second is a file it may use. Messages are lines of JSON on standard input and
output, as the protocol's stdio transport has it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

manner = sys.argv[1]
modern = manner.startswith("modern")
file = sys.argv[2] if len(sys.argv) > 2 else os.devnull
lock = threading.Lock()
cancelled = []
subscribers = []
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

ECHO = {
    "name": "echo",
    "description": "Says it back.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}
OTHERS = [
    {"name": name, "description": "A test.", "inputSchema": {"type": "object"}}
    for name in ("late", "hang", "big", "steps", "crash", "environment", "announce", "cancelled", "fail", "garbage")
]


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def tools():
    if manner == "twins":
        return [ECHO, {**ECHO, "name": "Echo"}]
    if manner == "many":
        return [{**ECHO, "name": f"echo{n}"} for n in range(1_000)]
    if manner.endswith("changing"):
        with open(file) as described:
            return [json.loads(line) for line in described]
    return [ECHO, *OTHERS]


def call(ident, params):
    name, arguments = params["name"], params.get("arguments", {})
    if name == "echo":
        return send({"id": ident, "result": text(arguments.get("text", ""))})
    if name == "late":
        # The answer comes when the client has long given up.
        while ident not in cancelled:
            time.sleep(0.01)
        return send({"id": ident, "result": text("too late")})
    if name == "hang":
        return None
    if name == "big":
        return send({"id": ident, "result": text("0123456789abcdef" * (20 << 16))})
    if name == "steps":
        token = params["_meta"]["progressToken"]
        for n in (1, 2, 3):
            progress = {"progressToken": token, "progress": n, "total": 3, "message": f"step {n}"}
            send({"method": "notifications/progress", "params": progress})
        return send({"id": ident, "result": text("done")})
    if name == "crash":
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "environment":
        return send({"id": ident, "result": {"content": [], "structuredContent": dict(os.environ)}})
    if name == "announce":
        # Without a session those are told who asked to be.
        told = [{"_meta": {SUBSCRIPTION: subscriber}} for subscriber in subscribers] if modern else [{}]
        for params in told:
            send({"method": "notifications/tools/list_changed", "params": params})
        return send({"id": ident, "result": text("announced")})
    if name == "cancelled":
        return send({"id": ident, "result": text(json.dumps(len(cancelled)))})
    if name == "fail":
        return send({"id": ident, "result": {**text("it did not work: " + arguments.get("text", "")), "isError": True}})
    if name == "garbage":
        with lock:
            sys.stdout.write("this is no JSON\n{\"jsonrpc\": \"2.0\"\n[]\n\n\x00\x01\n")
            sys.stdout.flush()
        send({"id": 999_999, "result": text("an answer to nothing")})
        return send({"id": ident, "result": text("after the garbage")})
    return send({"id": ident, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})


def answer(message):
    method, ident = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method == "server/discover":
        if modern:
            capabilities = {"tools": {"listChanged": True}}
            send({"id": ident, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                  "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}})
        elif manner == "touchy":
            sys.exit("what is a server/discover?")
        else:
            send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "initialize":
        info = {"name": "rude", "version": "1"}
        send({"id": ident, "result": {"protocolVersion": "2025-11-25", "serverInfo": info,
              "capabilities": {"tools": {"listChanged": True}}}})
    elif method == "tools/list":
        page = {"tools": tools()}
        if manner == "endless":
            page = {"tools": [], "nextCursor": f"after {ident}"}
        if modern:
            page = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **page}
        send({"id": ident, "result": page})
    elif method == "subscriptions/listen":
        subscribers.append(ident)
        send({"method": "notifications/subscriptions/acknowledged",
              "params": {"_meta": {SUBSCRIPTION: ident}, "notifications": params["notifications"]}})
    elif method == "tools/call":
        threading.Thread(target=call, args=(ident, params), daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.append(params["requestId"])


def note_processes(*more):
    with open(file, "w") as pids:
        pids.write(json.dumps([os.getpid(), *more]))


if manner == "dead":
    sys.exit("there is no such database")
if manner == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["/bin/sleep", "1000"])
    note_processes(child.pid)
if manner == "astray":
    # In a session of its own, and so in no group that could be ended with this one.
    child = subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    note_processes(child.pid)
if manner == "mute":
    note_processes()
if manner == "counted":
    with open(file, "a") as starts:
        starts.write("started\n")
for line in sys.stdin:
    if manner == "mute":
        continue
    answer(json.loads(line))
if manner == "deaf":
    while True:
        time.sleep(1_000)
