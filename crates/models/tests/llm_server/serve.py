"""Serves a GGUF model by llama.cpp's own HTTP server, on a port of its choice, until standard input ends.

Started by the tests (mod.rs beside this file) as `python serve.py MODEL`. The first line of standard output is the
address. Needs the package `xllamacpp`, which carries the server.
"""

import signal
import sys

import xllamacpp

# Each of the two slots has half of it: a request of more tokens is one that does not fit.
CONTEXT = 4096


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 2
    params.kv_unified = False
    # More threads than idle cores make it slower by an order of magnitude: they wait for each other spinning.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.use_jinja = True
    params.ui = False
    # A vector of a text is the mean of its tokens' vectors.
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.endpoint_metrics = True
    params.offline = True
    server = xllamacpp.Server(params)
    # Ctrl-C is for whoever started this; the end of its standard input is for this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
