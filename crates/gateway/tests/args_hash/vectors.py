"""Writes test vectors for `args_hash` from Python's own JSON, one object a line.

    python3 vectors.py fixed > vectors.jsonl        the committed table
    python3 vectors.py random 200000 SEED > FILE    for PARAPH_ARGS_HASH_VECTORS=FILE cargo test
"""

import hashlib
import json
import random
import struct
import sys


def line(text):
    value = json.loads(text)
    stable = json.dumps(value or {}, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(stable.encode()).hexdigest()[:12]
    return json.dumps({"in": text, "stable": stable, "hash": digest})


FIXED = [
    "{}", "null", "[]", "0", "-0", "0.0", "-0.0", "0e7", '""', "false", " \t\r\n{ } ",
    '{"a":null}', '{"a":[]}', '{"a":{}}', '{"a":[[],{},[{}]]}', '{"a":true,"b":false}',
    # integers
    '{"n":-0}', '{"n":0}', '{"n":-1}', '{"n":9007199254740993}', '{"n":2512292042121000001}',
    '{"n":18446744073709551616}', '{"n":-123456789012345678901234567890123456789}',
    '{"n":' + "9" * 4300 + "}", '{"n":-' + "9" * 4300 + "}",
    # floats
    '{"n":-0.0}', '{"n":0.0}', '{"n":1.0}', '{"n":1e2}', '{"n":1E2}', '{"n":1e+2}', '{"n":1e-2}',
    '{"n":0.1}', '{"n":0.30000000000000004}', '{"n":1.10}', '{"n":100.50}',
    '{"n":0.0001}', '{"n":0.00001}', '{"n":0.00012345}', '{"n":0.000099999999999999999}',
    '{"n":1e15}', '{"n":1e16}', '{"n":1e17}', '{"n":9999999999999998.0}', '{"n":9999999999999999.0}',
    '{"n":123456789012345680.0}', '{"n":1.5e300}', '{"n":1e22}', '{"n":1e23}', '{"n":1e-7}',
    '{"n":5e-324}', '{"n":2e-324}', '{"n":1e-400}', '{"n":-1e-400}', '{"n":2.2250738585072011e-308}',
    '{"n":1.7976931348623157e308}', '{"n":1.7976931348623159e308}', '{"n":1e999}', '{"n":-1e999}',
    '{"n":1e99999999999999999999}', '{"n":1e-99999999999999999999}', '{"n":9007199254740993.0}',
    '{"n":' + "1" * 400 + '.0}', '{"n":0.' + "0" * 400 + '1}', '{"n":' + "1" * 5000 + 'e0}',
    '{"n":0.1000000000000000055511151231257827}', '{"n":4.35}', '{"n":2.675}', '{"n":1e21}',
    # the shortest digits lie halfway: Python rounds to even
    '{"n":2170742401146264.22937757159}', '{"n":1125899906842624.25}', '{"n":-1125899906842624.75}',
    '{"n":9007199254740991.5}', '{"n":4503599627370496.5}', '{"n":2251799813685248.25}', '{"n":2251799813685249.75}',
    # strings
    r'{"s":"\"\\\/\b\f\n\r\t"}', r'{"s":"\u0000\u0001\u001f\u007f\u0080\u009f"}', '{"s":"\x7f"}',
    '{"s":"/"}', '{"s":"é"}', r'{"s":"\u00e9"}', r'{"s":"\u00E9"}', '{"s":"日本語"}',
    '{"s":"😀 𝒳"}', r'{"s":"\ud83d\ude00"}', r'{"s":"\uD83D\uDE00 \uffff \ufffe"}', '{"s":"\u2028\u2029"}',
    '{"s":"\ufeff"}', '{"s":"e\u0301"}', '{"s":"<script>&amp;\'"}', '{"s":"  a   b "}',
    # keys
    '{"b":1,"B":2,"a":3,"":4,"10":5,"9":6}', '{"a":1,"a":2}', '{"a":1,"b":2,"a":3,"b":4,"c":5}',
    r'{"a":1,"\u0061":2}', '{"a":{"x":1},"a":{"y":2}}', '{"a":[{"k":1,"k":2}],"a":[{"k":3,"k":[4]}]}',
    r'{"é":1,"z":2,"ÿ":3}', r'{"\uffff":1,"😀":2,"\ue000":3}', r'{"\u0000":1,"":2," ":3}',
    '{"aa":1,"a":2,"a ":3,"ab":4,"A":5}', '[1,[2,[3,{"z":1,"y":[{"b":1,"a":2}]}]]]',
    '{"user_id":42}', '{"user_id":"42"}', '{"query":"refund policy"}', '{"user_id":42.0}', "7", '"x"', "true",
]


def random_string(rng):
    def character():
        kind = rng.random()
        if kind < 0.6:
            return chr(rng.randrange(0x20, 0x7F))
        if kind < 0.7:
            return chr(rng.randrange(0, 0x20))
        if kind < 0.8:
            return rng.choice(["\x7f", "\x80", "\u00a0", "\u2028", "\ufeff", "\uffff", "\ue000"])
        while True:
            code = rng.randrange(0x80, 0x110000 if kind < 0.9 else 0x800)
            if not 0xD800 <= code < 0xE000:
                return chr(code)

    text = "".join(character() for _ in range(rng.randrange(0, 9)))
    return json.dumps(text, ensure_ascii=rng.random() < 0.5)


def random_number(rng):
    kind = rng.random()
    if kind < 0.2:
        return str(rng.randrange(-1000, 1000))
    if kind < 0.4:
        return str(rng.randrange(-(10 ** rng.randrange(1, 60)), 10 ** rng.randrange(1, 60)))
    if kind < 0.6:
        while True:
            number = struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]
            if number == number and abs(number) != float("inf"):
                return repr(number) if rng.random() < 0.5 else f"{number:.25e}"
    digits = lambda most: "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, most)))
    whole = digits(25).lstrip("0") or "0"
    point = "." + digits(30) if rng.random() < 0.7 else ""
    exponent = ""
    if rng.random() < 0.6:
        exponent = rng.choice("eE") + rng.choice(["", "+", "-"]) + str(rng.randrange(0, 340))
    return rng.choice(["", "-"]) + whole + point + exponent


def random_value(rng, depth):
    space = lambda: "".join(rng.choice(" \n\t\r") for _ in range(rng.randrange(0, 2)))
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return rng.choice([random_number, random_number, random_string, lambda _: rng.choice(["null", "true", "false"])])(rng)
    if kind < 0.6:
        items = [random_value(rng, depth - 1) for _ in range(rng.randrange(0, 4))]
        return "[" + space() + ",".join(space() + item + space() for item in items) + "]"
    return random_object(rng, depth)


def random_object(rng, depth):
    keys = [random_string(rng) for _ in range(rng.randrange(0, 5))]
    if keys and rng.random() < 0.3:
        keys.append(rng.choice(keys))
    return "{" + ",".join(f"{key}: {random_value(rng, depth - 1)}" for key in keys) + "}"


if sys.argv[1] == "fixed":
    for text in FIXED:
        print(line(text))
    rng = random.Random(7)
    for _ in range(120):
        print(line(random_object(rng, 3)))
else:
    rng = random.Random(int(sys.argv[3]))
    for _ in range(int(sys.argv[2])):
        print(line(random_object(rng, 4)))
