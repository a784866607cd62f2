"""The shapes of `benches/src/shapes` on LangGraph, for comparison; started by `paraph-bench`.

`bench.py serve` reads one JSON request a line from standard input and answers each with one line:
    {"shape": "react_100", "saver": "none" | "exit" | "async" | "sqlite-sync" …, "updates": true}
        ->  {"ms": 245.1, "rss": 91234567, "disk": null}
Each request is one run on uvloop with a fresh saver and thread: `astream` in updates mode with all events read, or
`ainvoke`. `sqlite-` and `postgres-` with a durability are its savers on disk, on a fresh file or database, by `invoke`
with nodes that are plain functions, which is what those savers are for.
`rss` is this process's peak so far in bytes; for a peak of one shape start a process for it alone. `disk` is what the
saver takes on disk afterwards.

Whoever changes a shape here changes it in `benches/src/shapes` too.
"""

import asyncio
import inspect
import json
import operator
import os
import random
import sqlite3
import string
import sys
import time
import uuid
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

try:
    from uvloop import run as run_loop
except ImportError:  # The default loop is a little slower.
    from asyncio import run as run_loop


class Chain(TypedDict):
    items: Annotated[list[str], operator.add]


def sequential(length):
    async def step(state):
        return {}

    builder = StateGraph(Chain)
    for at in range(length):
        builder.add_node(f"node_{at}", step)
        builder.add_edge(f"node_{at - 1}" if at else START, f"node_{at}")
    builder.add_edge(f"node_{length - 1}", END)
    return builder, lambda: {"items": []}, length


class Chat(TypedDict):
    messages: Annotated[list, add_messages]


def noise(turns):
    return react(turns, noise=True)


def letters(seed, count):
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits + "+-", k=count))


def react(turns, noise=False):
    async def brain(state):
        turn = len(state["messages"]) // 2
        if turn == turns:
            return {"messages": [AIMessage("answer" * 100, id=f"ai-{turn}")]}
        query = letters(turn, 3_600) if noise else "c2f1a5de-7d1b-4a53-9f3e-51d4b8a90c77" * 100
        call = {"id": f"call-{turn}", "name": "lookup", "args": {"query": query}}
        return {"messages": [AIMessage("", id=f"ai-{turn}", tool_calls=[call])]}

    async def hands(call):
        content = letters(call["id"], 36_180) if noise else f"result for query: {call['args']['query']}" * 10
        return {"messages": [ToolMessage(content, id=f"tool-{call['id']}", tool_call_id=call["id"])]}

    def route(state):
        calls = state["messages"][-1].tool_calls
        return [Send("hands", call) for call in calls] if calls else END

    builder = StateGraph(Chat)
    builder.add_node("brain", brain)
    builder.add_node("hands", hands)
    builder.add_edge(START, "brain")
    builder.add_conditional_edges("brain", route, ["hands", END])
    builder.add_edge("hands", "brain")
    return builder, lambda: {"messages": [HumanMessage("hi?", id="human")]}, 2 * turns + 1


class Jokes(TypedDict):
    subjects: list[list[str]]
    jokes: Annotated[list[str], operator.add]


class Joke(TypedDict):
    subject: list[str]
    title: str
    text: str
    rounds: int
    jokes: list[str]


def fanout(count):
    async def edit(joke):
        return {"title": "".join(joke["subject"]) + " - hohoho"}

    async def generate(joke):
        return {"text": f"Joke about {joke['title']}", "rounds": 0}

    async def bump(joke):
        text = joke["text"] + " a"
        return {"text": text, "rounds": joke["rounds"] + 1, "jokes": [text]}

    inner = StateGraph(Joke)
    inner.add_node("edit", edit)
    inner.add_node("generate", generate)
    inner.add_node("bump", bump)
    inner.add_edge(START, "edit")
    inner.add_edge("edit", "generate")
    inner.add_edge("generate", "bump")
    inner.add_conditional_edges("bump", lambda joke: END if joke["rounds"] == 10 else "bump", ["bump", END])

    async def split(state):
        return {}

    builder = StateGraph(Jokes)
    builder.add_node("split", split)
    builder.add_node("tell", inner.compile())
    builder.add_edge(START, "split")
    builder.add_conditional_edges(
        "split", lambda state: [Send("tell", {"subject": subject}) for subject in state["subjects"]], ["tell"]
    )
    builder.add_edge("tell", END)
    subjects = [[string.ascii_lowercase[at % 26] for at in range(1000)] for _ in range(count)]
    return builder, lambda: {"subjects": subjects}, count + 1


class Inbox(TypedDict):
    messages: Annotated[list[Any], operator.add]
    events: Annotated[list[Any], operator.add]
    categories: Annotated[list[Any], operator.add]
    replies: Annotated[list[Any], operator.add]
    people: Annotated[dict[str, Any], operator.or_]
    notified: Annotated[dict[str, Any], operator.or_]
    rules: list[Any]
    memories: list[Any]
    issue: Any
    auto_reply: Any
    user: Any
    customer: Any
    medium: str
    thread: str
    bot: str


def wide(lists, letters):
    def word():
        return "".join(random.choices(string.ascii_lowercase, k=letters))

    def keyed(state, channel):
        return {f"person {len(state['replies'])}": state[channel]}

    nodes = {
        "one": lambda s: {"events": s["messages"][-1:], "medium": word()},
        "two": lambda s: {"issue": s["messages"][0], "auto_reply": s["events"][0]},
        "three": lambda s: {"rules": [s["issue"]], "bot": word()},
        "four": lambda s: {
            "categories": [s["auto_reply"]],
            "replies": [s["issue"]],
            "memories": list(s["events"]),
        },
        "five": lambda s: {
            "user": s["issue"],
            "customer": s["rules"][0],
            "people": keyed(s, "issue"),
            "notified": keyed(s, "auto_reply"),
            "thread": word(),
        },
        "six": lambda s: {"messages": s["messages"] * 2},
    }

    def node(work):
        async def run(state):
            return work(state)

        return run

    builder = StateGraph(Inbox)
    for name, work in nodes.items():
        builder.add_node(name, node(work))
    builder.add_edge(START, "one")
    builder.add_edge("one", "two")
    builder.add_edge("two", "three")
    builder.add_edge("two", "four")
    builder.add_edge(["three", "four"], "five")
    builder.add_edge("five", "six")
    builder.add_conditional_edges("six", lambda s: END if len(s["messages"]) > letters else "one", ["one", END])

    inner = next(inner for inner in (5, 4, 3, 2, 1) if lists % inner == 0)
    mixed = ["hi?" * 10, True, 1, 6327816386138, None] * 5
    message = {str(i) * 10: {str(j) * 10: list(mixed) for j in range(inner)} for i in range(lists // inner)}
    rounds, count = 0, 1
    while count <= letters:
        rounds, count = rounds + 1, count * 3
    return builder, lambda: {"messages": [message]}, 6 * rounds


class Tally(TypedDict):
    done: Annotated[list[int], operator.add]


def parallel(count):
    async def wait(state):
        await asyncio.sleep(0.02)
        return {"done": [1]}

    builder = StateGraph(Tally)
    for at in range(count):
        builder.add_node(f"node_{at}", wait)
        builder.add_edge(START, f"node_{at}")
        builder.add_edge(f"node_{at}", END)
    return builder, lambda: {"done": []}, count


def plainly(work):
    """An `async def` that waits for nothing, as a plain function."""

    def run(state):
        try:
            work(state).send(None)
        except StopIteration as done:
            return done.value
        raise RuntimeError("a node waits for something")

    return run


KINDS = {"sequential": sequential, "react": react, "noise": noise, "fanout": fanout, "wide": wide, "parallel": parallel}
BUILT = {}


def build(shape, plain):
    if (shape, plain) not in BUILT:
        kind, size = shape.split("_")
        if not plain:
            BUILT[shape, plain] = KINDS[kind](*map(int, size.split("x")))
        else:
            # The same graph, each coroutine function as a plain one.
            add_node = StateGraph.add_node

            def add_plain(builder, name, node):
                return add_node(builder, name, plainly(node) if inspect.iscoroutinefunction(node) else node)

            StateGraph.add_node = add_plain
            try:
                BUILT[shape, plain] = KINDS[kind](*map(int, size.split("x")))
            finally:
                StateGraph.add_node = add_node
    return BUILT[shape, plain]


@contextmanager
def sqlite_saver():
    """A saver on a fresh file, and a function that says how long the file is."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    path = os.path.join(os.environ["PARAPH_BENCH_FOLDER"], f"langgraph-{uuid.uuid4()}.db")
    files = [path, f"{path}-wal", f"{path}-shm"]
    connection = sqlite3.connect(path, check_same_thread=False)
    # What we hold ourselves to; the saver's own default for the first is the same.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    saver = SqliteSaver(connection)
    saver.setup()

    def disk():
        connection.close()
        return sum(os.path.getsize(file) for file in files[:2] if os.path.exists(file))

    try:
        yield saver, disk
    finally:
        connection.close()
        for file in files:
            if os.path.exists(file):
                os.remove(file)


@contextmanager
def postgres_saver():
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver

    server, name = os.environ["PARAPH_BENCH_POSTGRES"], f"langgraph_{uuid.uuid4().hex}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"')
        with PostgresSaver.from_conn_string(f"{server}/{name}") as saver:
            saver.setup()

            def disk():
                with psycopg.connect(f"{server}/{name}") as connection:
                    return connection.execute("SELECT pg_database_size(current_database())").fetchone()[0] - empty

            with psycopg.connect(f"{server}/{name}") as connection:
                empty = connection.execute("SELECT pg_database_size(current_database())").fetchone()[0]
            yield saver, disk
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def run_on_disk(shape, store, durability):
    builder, make_input, _ = build(shape, plain=True)
    with {"sqlite": sqlite_saver, "postgres": postgres_saver}[store]() as (saver, disk):
        graph = builder.compile(checkpointer=saver)
        value = make_input()
        config = {"recursion_limit": 1_000_000, "configurable": {"thread_id": "bench"}}
        start = time.perf_counter()
        graph.invoke(value, config, durability=durability)
        taken = time.perf_counter() - start
        return {"ms": taken * 1000, "rss": peak(), "disk": disk()}


async def run(shape, saver, updates):
    store, _, durability = saver.partition("-")
    if durability:
        return run_on_disk(shape, store, durability)
    builder, make_input, expected = build(shape, plain=False)
    graph = builder.compile(checkpointer=None if saver == "none" else InMemorySaver())
    value = make_input()
    config = {"recursion_limit": 1_000_000, "configurable": {"thread_id": "bench"}}
    options = {} if saver == "none" else {"durability": saver}
    events = 0
    start = time.perf_counter()
    if updates:
        async for event in graph.astream(value, config, stream_mode="updates", **options):
            events += len(event)
    else:
        await graph.ainvoke(value, config, **options)
    taken = time.perf_counter() - start
    if updates and events != expected:
        raise RuntimeError(f"{shape}: {events} events instead of {expected}")
    return {"ms": taken * 1000, "rss": peak(), "disk": None}


def peak():
    """Not `getrusage`: its peak begins with the one of the process that started this one."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["VmHWM"].split()[0]) * 1024


async def serve():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = await run(request["shape"], request["saver"], request["updates"])
        except Exception as error:  # The harness prints it; the other shapes go on.
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    run_loop(serve())
