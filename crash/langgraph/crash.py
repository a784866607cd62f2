"""The chain of three effects on LangGraph with its SqliteSaver in `sync`, to be killed like ours; see `src/peer.rs`.

`crash.py serve` imports once and then forks a child per request line, since a fresh interpreter takes a second:
    {"run": {"database", "thread", "counter", "trial", "process"}}    one child that drives the thread to its end
    {"read": {"database", "thread"}}                                  what is in the database, as one line of JSON
Of a child it says `pid N`, then the child's own lines, then `ended CODE`.
"""

import json
import operator
import os
import socket
import sqlite3
import sys
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.func import task
from langgraph.graph import END, START, StateGraph

NODES = ["first", "second", "third"]


class Case(TypedDict):
    log: Annotated[list[str], operator.add]


def say(line):
    os.write(1, (line + "\n").encode())


def ask(world, effect, key):
    request = {"trial": world["trial"], "effect": effect, "key": key, "process": world["process"]}
    with socket.create_connection(world["counter"]) as stream:
        stream.sendall((json.dumps(request) + "\n").encode())
        answer = stream.makefile().readline()
    if answer != "ok\n":
        raise RuntimeError(f"the counter said {answer!r}")


def build(world):
    @task
    def plain(effect):
        ask(world, effect, None)
        return effect

    def node(name):
        def work(state: Case, config: RunnableConfig):
            # There is no key for the outside; the task's own id is the nearest to one.
            ask(world, name, config["metadata"]["langgraph_checkpoint_ns"])
            plain(name).result()
            say(f"memo {name}")
            return {"log": [f"{name} after {len(state['log'])}"]}

        return work

    builder = StateGraph(Case)
    for before, name in zip([START, *NODES], NODES):
        builder.add_node(name, node(name))
        builder.add_edge(before, name)
    builder.add_edge(NODES[-1], END)
    return builder


def database(path):
    connection = sqlite3.connect(path, check_same_thread=False)
    # What we hold ourselves to: a commit is synced.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def run(request):
    graph = build(request).compile(checkpointer=SqliteSaver(database(request["database"])))
    config = {"configurable": {"thread_id": request["thread"]}}
    say("began")
    stands = graph.get_state(config)
    # Not `next`: it is empty too when a superstep's results are saved and its checkpoint is not.
    if not stands.created_at or stands.tasks:
        value = None if stands.created_at else {"log": []}
        for event in graph.stream(value, config, stream_mode="checkpoints", durability="sync"):
            at = event["config"]["configurable"]["checkpoint_id"]
            say(f"saved {event['metadata']['step']} {at} ")
    say("done")


def read(request):
    world = {"trial": "", "counter": None, "process": 0}
    graph = build(world).compile(checkpointer=SqliteSaver(database(request["database"])))
    config = {"configurable": {"thread_id": request["thread"]}}
    history = list(graph.get_state_history(config))
    left = {
        "state": history[0].values if history else {},
        "next": list(history[0].next) if history else [],
        "checkpoints": [stands.config["configurable"]["checkpoint_id"] for stands in history],
        "logs": [stands.values.get("log", []) for stands in reversed(history)],
    }
    say(json.dumps(left))


def in_a_child(work, request):
    known, tell = os.pipe()
    child = os.fork()
    if child == 0:
        code = 2
        try:
            # Nothing is said before the parent has said who it is.
            os.read(known, 1)
            work(request)
            code = 0
        except BaseException as error:  # Whatever it is, the parent is to hear of it.
            sys.stderr.write(f"error: {type(error).__name__}: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(code)
    say(f"pid {child}")
    os.write(tell, b"!")
    os.close(tell)
    os.close(known)
    _, status = os.waitpid(child, 0)
    say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "run" in request:
            in_a_child(run, request["run"])
        else:
            in_a_child(read, request["read"])
