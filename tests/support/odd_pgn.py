"""PGN files as other programs write them, and as joining, mailing and editing leave them: malformed, but anybody can
count the games."""
# ruff: noqa: RUF001 (letters of other scripts are meant)

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from random import Random

import chess
import chess.pgn
from paths import DATA

NAMES = ("Müller, K", "Šahović", "O'Neill", 'The "Rocket"', "A [B]", "Nf3 Cup", "x" * 70, "", "1. e4 e5", "{brace")
LETTERS = ("KQRBN", "KDTLS", "RDTFC", "RDTAC", "KDVSJ", "♔♕♖♗♘")
COMMENTS = (
    "{[%clk 0:03:00]}", "{ [%eval 0.17] [%clk 0:00:30] }", "{+0.30/12 0.05s}", "{book}", "{a\n[not a tag]\nb}",
    '{quoted\n\n[Event "x"]\n\n1. d4 d5}', "{a {nested} one}", "{a\n\n1. e4 line}", "{}",
    "$1", "$146", "!?", "+-", "N\n",
)  # fmt: skip
STYLES = ("lichess", "chess.com", "ChessBase", "SCID", "TWIC", "pgn-extract", "fastchess", "bare")


@dataclass
class OddGame:
    tags: dict[str, str]
    moves: list[str]
    """UCI"""
    text: str
    letters: str = "KQRBN"
    """Letters of the pieces."""


def _seeds() -> list[list[chess.Move]]:
    found = []
    for name in ("openings", "blunders"):
        with (DATA / "games" / f"{name}.pgn").open(encoding="utf-8") as file:
            while (game := chess.pgn.read_game(file)) is not None:
                if "FEN" not in game.headers:
                    found.append(list(game.mainline_moves()))
    return found


SEEDS = _seeds()


def _moves(dice: Random) -> list[chess.Move]:
    if dice.random() < 0.6:
        return dice.choice(SEEDS)[: dice.randint(1, 30)]
    board = chess.Board()
    while len(board.move_stack) < dice.randint(1, 30) and (legal := list(board.legal_moves)):
        board.push(dice.choice(legal))
    return board.move_stack


def _word(board: chess.Board, move: chess.Move, letters: str, dice: Random) -> str:
    san = board.san(move)
    word = "".join(letters["KQRBN".index(letter)] if letter in "KQRBN" else letter for letter in san)
    if "O-O" in san:
        return dice.choice((san, san.replace("O", "0"), san.replace("O", "o")))
    forms = [word, word, word, word + dice.choice("!?"), word.replace("=", ""), word.replace("x", "×")]
    if board.is_en_passant(move):
        forms += [word + "e.p.", word + " e.p.", word + "ep"]
    if board.piece_type_at(move.from_square) == chess.PAWN and not move.promotion:
        forms += [chess.square_name(move.from_square) + dice.choice("-x") + chess.square_name(move.to_square)]
    elif "=" in word:
        forms += [word.replace("=", "/"), word[: word.index("=")] + f"({word[word.index('=') + 1]})"]
    return dice.choice(forms)


def _movetext(moves: list[chess.Move], letters: str, style: str, is_odd: bool, dice: Random) -> list[str]:
    """Pieces that blanks or line ends separate."""
    board = chess.Board()
    gap = "" if style in ("ChessBase", "SCID", "TWIC") else " "
    words = []
    for move in moves:
        number = f"{board.fullmove_number}."
        after_comment = bool(words) and words[-1].endswith("}")
        if board.turn:
            words.append(number + gap + _word(board, move, letters, dice))
        elif after_comment or style == "chess.com":
            words.append(number + ".." + gap + _word(board, move, letters, dice))
        else:
            words.append(_word(board, move, letters, dice))
        board.push(move)
        if style in ("lichess", "chess.com", "fastchess"):
            words.append(dice.choice(COMMENTS[:3]))
        elif dice.random() < 0.15:
            words.append(dice.choice(COMMENTS[:-1] if is_odd else COMMENTS[:4]))
        if dice.random() < 0.05 and len(board.move_stack) > 1:
            board.pop()
            other = dice.choice(list(board.legal_moves))
            number = f"{board.fullmove_number}{'.' if board.turn else '...'}"
            words.append(f"({number} {_word(board, other, letters, dice)} {{or}})")
            board.push(move)
            words.append("{back}")
    return words


def _tag_section(tags: dict[str, str], is_odd: bool, dice: Random) -> str:
    lines = [f'[{name} "{value}"]' for name, value in tags.items()]
    if is_odd:
        for place, line in enumerate(lines):
            if dice.random() < 0.1:
                lines[place] = dice.choice(("  ", "\t", "\ufeff", "\f")) + line
            cut = line.rindex(" ")
            if dice.random() < 0.1 and line[cut + 1] not in '["':
                lines[place] = f"{line[:cut]}\n{line[cut + 1 :]}" if '"' in line[:cut] else line
    gap = dice.choice((" ", "", "\n\n")) if is_odd and dice.random() < 0.3 else "\n"
    behind = dice.choice(("\n\n\n", "\n", " ", "\n \n\n", "\n\n\n\n")) if is_odd else "\n\n"
    return gap.join(lines) + behind


def odd_game(number: int, is_odd: bool, allowed: set[str], dice: Random) -> tuple[OddGame, set[str]]:
    """A game, and what it lacks at its end. allowed: what may be wrong with it beside."""
    style = dice.choice(STYLES) if "bare" in allowed else dice.choice(STYLES[:-1])
    moves = _moves(dice)
    result = dice.choice(("1-0", "0-1", "1/2-1/2", "*"))
    tags = {}
    if style != "bare":
        tags = {
            "Event": f"game {number} {dice.choice(NAMES)}".strip(),
            "White": dice.choice(NAMES),
            "Black": dice.choice(NAMES),
        }
        tags |= {"Result": result, "UTCDate": "2026.01.02"}
    letters = dice.choice(LETTERS) if is_odd and dice.random() < 0.3 else "KQRBN"
    words = _movetext(moves, letters, style, is_odd, dice)
    lacks = {fault for fault in ("result", "brace", "paren") if fault in allowed and is_odd and dice.random() < 0.15}
    words += [] if "result" in lacks or "brace" in lacks else [result]
    if "brace" in lacks:
        words.append("{never closed 1. e4 e5")
    elif "paren" in lacks:
        words.insert(len(words) - ("result" not in lacks), "(1. a3 {open}")
    if is_odd and "stray" in allowed and dice.random() < 0.2:
        words.insert(dice.randrange(1, len(words) + 1) if len(words) > 1 else 1, dice.choice(("}", ")")))
    separator = "\n" if style == "chess.com" else " "
    text = ""
    for place, word in enumerate(words):
        is_numbered = word[0].isdigit() and "." in word
        if is_odd and tags and place and is_numbered and dice.random() < 0.05:
            text += dice.choice(("\n\n", "\n% escaped\n", " ; to the end (\n", "\n\n\n", "\f"))
        elif place:
            text += "\n" if dice.random() < 0.1 else separator
        text += word
    if style in ("TWIC", "pgn-extract", "ChessBase") and not is_odd:
        text = "\n".join(textwrap.wrap(text, 78))
    section = _tag_section(tags, is_odd, dice) if tags else ""
    if is_odd and tags and "preface" in allowed and dice.random() < 0.1:
        section = "From: somebody\nSome words.\n" + section
    return OddGame(tags, [move.uci() for move in moves], section + text, letters), lacks


def odd_file(dice: Random) -> tuple[bytes, list[OddGame]]:
    kind = dice.choice(("stray", "brace"))  # a brace that is open, and one that closes nothing, would make a pair
    games, data = [], b""
    lacks: set[str] = set()
    line_end = dice.choice(("\n", "\n", "\r\n", "\r"))
    for number in range(dice.randint(1, 6)):
        allowed = {"result", "paren", kind} | ({"bare", "preface"} if not lacks else set())
        game, lacks_now = odd_game(number, dice.random() < 0.7, allowed, dice)
        if lacks and not game.tags:
            continue
        is_bare = not game.tags
        gap = dice.choice(("\n\n", "\n\n\n\n", "\n", "")) if number and not (lacks or is_bare) else "\n\n"
        if gap == "" and (game.text[0] not in "[1" or lacks):
            gap = "\n\n"
        lacks = lacks_now
        text = (gap if games else "") + game.text
        games.append(game)
        begin, _, end = text.rpartition("\n")  # lines have one encoding
        fits = begin[:1] in ("", "\n") and end.isascii() and all(ord(letter) < 256 for letter in text)
        data += text.replace("\n", line_end).encode("latin-1" if fits and dice.random() < 0.3 else "utf-8")
    return data + dice.choice(("", "\n", "\n\n", "\x1a")).replace("\n", line_end).encode(), games
