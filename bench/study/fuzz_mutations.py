"""Mutations of texts: what a fuzzer makes of an input that a program reads well."""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Sequence
from random import Random

LONGEST = 1 << 16
"""Characters of a mutated text: parts are repeated, and the time a program takes must show in seconds."""

WORDS = (
    "\0", "\n", "\r\n", "\r", "\t", " ", "  ", "\x1b[31m", "\x1b]0;x\x07", "\x85", "\u2028", "\u202e", "\ufeff",
    "\ud800", "é", "٣", "²", "_", "-", "--", "+", "=", "0", "-1", "1e9", "nan", "inf", "9" * 9, "9" * 19, "9" * 400,
    "9" * 5000, "18446744073709551616", "1_000", "0x10", "#", ";", "%", "$", "$" + "9" * 30, "\\", "\"", "'", "{", "}",
    "(", ")", "[", "]", "{}", "()", "((", "))", "{ ", " }", "[[", "<", ">", "*", "1-0", "1/2-1/2", "null", "true", "[]",
    "startpos", "moves", "fen", "position", "go", "infinite", "w", "b", "KQkq", "HAha", "e3", "e9", "8/8/8/8/8/8/8/8",
    "k7/8/8/8/8/8/8/7K", "e2e4", "e7e8q", "0000", "O-O", "Nf3", "Qxf7#", "e8=Q+", "--", "Z0", "@@@@", "P@e4", "bm",
    "am", "id", "c0", "c8", "c9", "hmvc", "fmvn", "pv", "acd", "D1 20", "[FEN \"", "[Variant \"", "[Event \"x\"]\n",
    "[SetUp \"1\"]\n", "[%eval 1.0]", "/dev/zero", "/dev/null", "..", "~", "--depth", "--nodes", "--threads", "--help",
    "--json", "--out", "=", "#2", "dm", "BM", "//", ";;", "<>", "Sf3", "Nb d7", "e8(Q)", "e.p.", "\r\r\n", "\f", "\x1a",
    "1.", "1...", "[White \"x", "[Event \"y\"] ", "[%clk 0:01]", "\n\n\n", "{\n\n[Event \"z\"]\n", "½-½",
)  # fmt: skip
"""Pieces of the formats, and what programs trip over."""


def mutated(text: str, others: Sequence[str], dice: Random) -> str:
    """The text after one to eight mutations; others: texts to take parts from."""
    for _ in range(1 + min(dice.getrandbits(3) for _ in range(3))):
        text = _mutated_once(text, others, dice)[:LONGEST]
    return text


def mutated_source(text: str, others: Sequence[str], dice: Random) -> str:
    """A Python file after one to four names, numbers or operators were exchanged for others of such files; now and then
    a text as any."""
    if dice.random() < 0.1:
        return mutated(text, others, dice)
    words = [token for each in (text, *others) for token in _tokens(each)]
    lines = text.splitlines(True)
    chosen = dice.sample(_tokens(text), 1 + dice.getrandbits(2))
    for token in sorted(chosen, key=lambda token: token.start, reverse=True):  # from behind: places stay
        (row, begin), (_, end) = token.start, token.end
        word = dice.choice([other.string for other in words if other.type == token.type])
        word = word if dice.random() < 0.8 else dice.choice(("0", "-1", "(1 << 62)", "None", "0.5", "()"))
        lines[row - 1] = lines[row - 1][:begin] + word + lines[row - 1][end:]
    return "".join(lines)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """The names, numbers and operators of a file of Python, without what would rarely leave it one."""
    return [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.OP)
        and token.string not in "()[]{},:."
        and not keyword.iskeyword(token.string)
    ]


def mutated_bytes(data: bytes, dice: Random) -> bytes:
    """Of a binary file: bits turned, ranges cut out, repeated or filled."""
    changed = bytearray(data)
    for _ in range(1 + dice.getrandbits(2)):
        begin, end = _range(len(changed), dice)
        kind = dice.randrange(6)
        if kind == 0 and changed:
            changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del changed[begin:end]
        elif kind == 2:
            changed[begin:begin] = changed[begin:end][: 1 << 12]
        elif kind == 3:
            changed[begin:end] = bytes([dice.choice((0, 255, dice.getrandbits(8)))]) * (end - begin)
        elif kind == 4:
            del changed[begin:]
        else:
            changed[begin:end] = dice.randbytes(min(end - begin, 64))
    return bytes(changed)


def _range(length: int, dice: Random) -> tuple[int, int]:
    begin = dice.randint(0, length)
    return begin, min(length, begin + int(dice.expovariate(0.1)))


def _mutated_once(text: str, others: Sequence[str], dice: Random) -> str:
    kind = dice.randrange(9)
    begin, end = _range(len(text), dice)
    match kind:
        case 0 | 1:
            return text[:begin] + dice.choice(WORDS) + text[begin:]
        case 2:
            return text[:begin] + dice.choice(WORDS) + text[end:]
        case 3:
            return text[:begin] + text[end:]
        case 4:
            return text[:begin] + text[begin:end] * int(2 ** dice.uniform(1, 12)) + text[end:]
        case 5:
            return text[:begin] + chr(dice.choice((dice.randrange(128), dice.randrange(0x3000)))) + text[begin + 1 :]
        case 6:
            words = text.split(" ")
            a, b = dice.randrange(len(words)), dice.randrange(len(words))
            words[a], words[b] = words[b], words[a]
            return " ".join(words)
        case 7:
            other = dice.choice(others) if others else ""
            return text[:begin] + other[dice.randint(0, len(other)) :]
        case _:
            return text[:begin]
