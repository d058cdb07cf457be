"""The evaluation, slow and from its definition (`psearch_core/terms.py`): counts by name, for White; Black's are
those of the mirrored board."""

from __future__ import annotations

from collections import Counter

import chess
from naive import psq_sum, taper

from psearch_core.chess.evaluation import weights
from psearch_core.chess.tables import term_pairs
from psearch_core.terms import DANGER_STEP, DANGER_STEPS, REST_BOUND, TERMS

TERM = {term.name: term for term in TERMS}
Counts = Counter[tuple[str, int]]
"""(name of the term, place in its row) -> how often"""

MINORS = (chess.KNIGHT, chess.BISHOP)
PIECES = (chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN)


class Side:
    """Contents of a board as White sees it, and the counts of White's terms."""

    def __init__(self, board: chess.Board) -> None:
        self.board = board
        self.counts: Counts = Counter()
        self.units: Counts = Counter()
        self.own = chess.SquareSet(board.occupied_co[True])
        self.enemies = chess.SquareSet(board.occupied_co[False])
        self.occupied = self.own | self.enemies
        self.pawns = board.pieces(chess.PAWN, True)
        self.enemy_pawns = board.pieces(chess.PAWN, False)
        king, enemy_king = board.king(True), board.king(False)
        assert king is not None and enemy_king is not None
        self.king, self.enemy_king = king, enemy_king
        self.maps = {color: self._maps(color) for color in chess.COLORS}
        self.hit_by = {color: sum((Counter(set_) for _, set_ in self.maps[color]), Counter()) for color in chess.COLORS}

    # -- attacks -----------------------------------------------------------------------------------------------------

    def _seen(self, square: int, color: chess.Color) -> chess.SquareSet:
        """Attacks; bishops see through queens, rooks through queens and own rooks."""
        kind = self.board.piece_type_at(square)
        gone = chess.SquareSet()
        if kind in (chess.BISHOP, chess.ROOK):
            gone |= chess.SquareSet(self.board.queens)
        if kind == chess.ROOK:
            gone |= self.board.pieces(chess.ROOK, color)
        board = self.board.copy(stack=False)
        for other in gone:
            if other != square:
                board.remove_piece_at(other)
        return board.attacks(square)

    def _maps(self, color: chess.Color) -> list[tuple[int, chess.SquareSet]]:
        """(piece type, attacks) of every piece; pawns as one set of attacks to each wing."""
        found = []
        for square, piece in self.board.piece_map().items():
            if piece.color != color:
                continue
            if piece.piece_type == chess.PAWN:
                for target in self.board.attacks(square):
                    found.append((chess.PAWN, chess.SquareSet([target])))
            else:
                found.append((piece.piece_type, self._seen(square, color)))
        return found

    def by(self, color: chess.Color, *kinds: int) -> chess.SquareSet:
        return chess.SquareSet(set().union(*(set_ for kind, set_ in self.maps[color] if kind in kinds)))

    def attacked(self, color: chess.Color, times: int = 1) -> chess.SquareSet:
        return chess.SquareSet(square for square, count in self.hit_by[color].items() if count >= times)

    @staticmethod
    def ring(king: int) -> chess.SquareSet:
        file = min(max(chess.square_file(king), 1), 6)
        rank = min(max(chess.square_rank(king), 1), 6)
        return chess.SquareSet(chess.square(f, r) for f in range(file - 1, file + 2) for r in range(rank - 1, rank + 2))

    # -- terms -------------------------------------------------------------------------------------------------------

    def add(self, name: str, place: int = 0, count: int = 1) -> None:
        self.counts[name, place] += count

    def enemy_pawn_may_attack(self, square: int) -> bool:
        """Now, or after advancing."""
        file, rank = chess.square_file(square), chess.square_rank(square)
        return any(
            abs(chess.square_file(pawn) - file) == 1 and chess.square_rank(pawn) > rank for pawn in self.enemy_pawns
        )

    def is_passed(self, pawn: int) -> bool:
        file, rank = chess.square_file(pawn), chess.square_rank(pawn)
        for other in self.enemy_pawns:
            if abs(chess.square_file(other) - file) <= 1 and chess.square_rank(other) > rank:
                return False
        return not any(chess.square_file(o) == file and chess.square_rank(o) > rank for o in self.pawns)

    def pawn_terms(self) -> None:
        for pawn in self.pawns:
            file, rank = chess.square_file(pawn), chess.square_rank(pawn)
            beside = [p for p in self.pawns if abs(chess.square_file(p) - file) == 1]
            ahead = [p for p in self.enemy_pawns if chess.square_rank(p) > rank]
            opposed = any(chess.square_file(p) == file for p in ahead)
            if any(chess.square_file(p) == file and chess.square_rank(p) > rank for p in self.pawns):
                self.add("DOUBLED")
            if not beside:
                self.add("ISOLATED", opposed)
            elif all(chess.square_rank(p) > rank for p in beside) and any(
                pawn + 8 in self.board.attacks(p) for p in self.enemy_pawns
            ):
                self.add("BACKWARD", opposed)
            if any(chess.square_rank(p) == rank for p in beside):
                self.add("PHALANX", rank - 1)
            if any(chess.square_rank(p) == rank - 1 for p in beside):
                self.add("SUPPORTED", rank - 1)
            if self.is_passed(pawn):
                self.add("PASSED", rank - 1)
                if rank >= 3:
                    steps = chess.square_distance
                    self.add("PASSED_OWN_KING", rank - 3, min(steps(self.king, pawn + 8), 5))
                    self.add("PASSED_ENEMY_KING", rank - 3, min(steps(self.enemy_king, pawn + 8), 5))
            elif not opposed:
                sentries = sum(abs(chess.square_file(p) - file) <= 1 for p in ahead)
                if sum(chess.square_rank(p) <= rank for p in beside) >= sentries:
                    self.add("CANDIDATE", rank - 1)

    def shelter_terms(self) -> None:
        centre = min(max(chess.square_file(self.king), 1), 6)
        low = chess.square_rank(self.king)
        for file in range(centre - 1, centre + 2):
            own = [chess.square_rank(p) for p in self.pawns if chess.square_file(p) == file]
            enemy = [chess.square_rank(p) for p in self.enemy_pawns if chess.square_file(p) == file]
            own_rank = min((rank for rank in own if rank >= low), default=0)
            enemy_rank = min((rank for rank in enemy if rank >= low), default=0)
            self.add("SHELTER", 7 * min(file, 7 - file) + own_rank)
            self.add("STORM", 7 * (own_rank > 0 and enemy_rank == own_rank + 1) + enemy_rank)

    def area(self) -> chess.SquareSet:
        """Return the squares that count as mobility."""
        denied = self.by(False, chess.PAWN) | {self.king}
        for pawn in self.pawns:
            if chess.square_rank(pawn) in (1, 2) or pawn + 8 in self.occupied:
                denied.add(pawn)
        return ~denied

    def piece_terms(self) -> None:
        area = self.area()
        all_pawns = self.pawns | self.enemy_pawns
        guarded = self.by(True, chess.PAWN)
        outposts = chess.SquareSet(
            square for square in chess.SquareSet(0x0000FFFFFF000000) if not self.enemy_pawn_may_attack(square)
        )
        if len(self.board.pieces(chess.BISHOP, True)) >= 2:
            self.add("BISHOP_PAIR")
        for kind, name in zip(PIECES, ("KNIGHT", "BISHOP", "ROOK", "QUEEN"), strict=True):
            for square in self.board.pieces(kind, True):
                seen = self._seen(square, True)
                reach = len(seen & area)
                self.add(f"MOBILITY_{name}", reach)
                if kind in MINORS:
                    self.add("KING_DISTANCE", kind - chess.KNIGHT, chess.square_distance(square, self.king))
                    if square < 56 and square + 8 in all_pawns:
                        self.add("MINOR_BEHIND_PAWN")
                    if square in outposts:
                        self.add(f"OUTPOST_{name}", square in guarded)
                    elif kind == chess.KNIGHT and seen & outposts & guarded & ~self.own:
                        self.add("OUTPOST_REACHABLE")
                if kind == chess.BISHOP:
                    light = bool(chess.BB_LIGHT_SQUARES & chess.BB_SQUARES[square])
                    for pawn in self.pawns:
                        if bool(chess.BB_LIGHT_SQUARES & chess.BB_SQUARES[pawn]) == light:
                            self.add("BISHOP_PAWNS", pawn + 8 in self.occupied)
                if kind == chess.ROOK:
                    self.rook_terms(square, reach)

    def rook_terms(self, square: int, reach: int) -> None:
        file, rank = chess.square_file(square), chess.square_rank(square)
        king_file = chess.square_file(self.king)
        own = any(chess.square_file(p) == file for p in self.pawns)
        enemy = any(chess.square_file(p) == file for p in self.enemy_pawns)
        if not own:
            self.add("ROOK_SEMI_OPEN" if enemy else "ROOK_OPEN")
        elif reach <= 3 and rank == chess.square_rank(self.king) and (king_file >= 4) == (file > king_file):
            self.add("ROOK_TRAPPED")
        if rank == 6 and (
            chess.square_rank(self.enemy_king) == 7 or any(chess.square_rank(p) == 6 for p in self.enemy_pawns)
        ):
            self.add("ROOK_SEVENTH")

    def danger(self) -> int:
        """Units of danger to the enemy king."""
        units = self.units
        ring, king_set = self.ring(self.enemy_king), self.board.attacks(self.enemy_king)
        units["DANGER_BASE", 0] = 1
        units["DANGER_NO_QUEEN", 0] = not self.board.pieces(chess.QUEEN, True)
        for kind, seen in self.maps[True]:
            if kind in PIECES:
                units["DANGER_ATTACKER", kind - 2] += bool(seen & ring)
                units["DANGER_RING", 0] += len(seen & king_set)
        units["DANGER_PAWN_RING", 0] = len(self.by(True, chess.PAWN) & ring)
        ours, theirs = self.attacked(True), self.attacked(False)
        hardly = self.by(False, chess.KING, chess.QUEEN)
        weak = ours & ~self.attacked(False, 2) & (~theirs | hardly)
        safe = ~self.own & (~theirs | weak & self.attacked(True, 2))
        units["DANGER_WEAK", 0] = len(ring & weak)
        for kind in PIECES:
            probe = self.board.copy(stack=False)
            probe.set_piece_at(self.enemy_king, chess.Piece(kind, False))
            squares = probe.attacks(self.enemy_king) & self.by(True, kind) & ~self.own
            if kind == chess.QUEEN:
                squares &= ~self.by(False, chess.QUEEN)
            units["DANGER_CHECK", kind - 2] = min(len(squares & safe), 2)
            units["DANGER_UNSAFE_CHECK", 0] += len(squares & ~safe)
        file = chess.square_file(self.enemy_king)
        flank = range(0, 4) if file < 3 else range(2, 6) if file < 5 else range(4, 8)
        camp = chess.SquareSet(chess.square(f, r) for f in flank for r in range(3, 8))
        units["DANGER_FLANK", 0] = len(camp & ours)
        units["DANGER_FLANK_DEFENCE", 0] = len(camp & theirs)
        units["DANGER_KNIGHT_DEFENCE", 0] = bool(self.by(False, chess.KNIGHT) & ring)
        centre = min(max(file, 1), 6)
        for f in range(centre - 1, centre + 2):
            units["DANGER_OPEN_FILE", 0] += not any(
                chess.square_file(p) == f and chess.square_rank(p) <= chess.square_rank(self.enemy_king)
                for p in self.enemy_pawns
            )
        return sum(count * weights.UNIT_VALUES[name][place] for (name, place), count in units.items())

    def kind_counts(self, name: str, targets: chess.SquareSet, first: int) -> None:
        for square in targets:
            kind = self.board.piece_type_at(square)
            assert kind is not None
            if kind != chess.KING:
                self.add(name, kind - first)

    def threat_terms(self) -> None:
        ours, theirs = self.attacked(True), self.attacked(False)
        twice = self.attacked(True, 2)
        enemies = self.enemies & ~chess.SquareSet([self.enemy_king])
        pieces = enemies & ~self.enemy_pawns
        firm = self.by(False, chess.PAWN) | self.attacked(False, 2) & ~twice
        weak = enemies & ~firm & ours
        self.kind_counts("THREAT_BY_MINOR", (weak | pieces & firm) & self.by(True, *MINORS), chess.PAWN)
        rook_targets = weak | self.board.pieces(chess.QUEEN, False)
        self.kind_counts("THREAT_BY_ROOK", rook_targets & self.by(True, chess.ROOK), chess.PAWN)
        if weak & self.by(True, chess.KING):
            self.add("THREAT_BY_KING")
        self.add("HANGING", 0, len(weak & (~theirs | pieces & twice)))
        self.add("RESTRICTED", 0, len(ours & theirs & ~firm))

        safe = ~theirs | ours
        hit = chess.SquareSet()
        for pawn in self.pawns & safe:
            hit |= self.board.attacks(pawn)
        self.kind_counts("THREAT_BY_PAWN", hit & pieces, chess.KNIGHT)
        hit = chess.SquareSet()
        for pawn in self.pawns:
            targets = [pawn + 8] if pawn + 8 not in self.occupied else []
            if targets and chess.square_rank(pawn) == 1 and pawn + 16 not in self.occupied:
                targets.append(pawn + 16)
            for target in targets:
                if target in safe and target not in self.by(False, chess.PAWN):
                    hit |= chess.SquareSet(chess.BB_PAWN_ATTACKS[True][target])
        hit &= self.enemies & ~self.enemy_pawns & ~self.by(True, chess.PAWN)
        self.add("THREAT_BY_PUSH", 0, len(hit))

        queens = list(self.board.pieces(chess.QUEEN, False))
        if len(queens) == 1:
            free = ~firm & ~self.own & self.area()
            knight = chess.SquareSet(chess.BB_KNIGHT_ATTACKS[queens[0]]) & self.by(True, chess.KNIGHT)
            self.add("QUEEN_THREAT", 0, len(knight & free))
            probe = self.board.copy(stack=False)
            probe.set_piece_at(queens[0], chess.Piece(chess.BISHOP, False))
            slider = probe.attacks(queens[0]) & self.by(True, chess.BISHOP)
            probe.set_piece_at(queens[0], chess.Piece(chess.ROOK, False))
            slider |= probe.attacks(queens[0]) & self.by(True, chess.ROOK)
            self.add("QUEEN_THREAT", 1, len(slider & free & twice))

    def passed_terms(self) -> None:
        bare = self.enemies == self.enemy_pawns | {self.enemy_king}
        theirs = self.attacked(False)
        outruns = False
        for pawn in self.pawns:
            if not self.is_passed(pawn):
                continue
            file, rank = chess.square_file(pawn), chess.square_rank(pawn)
            path = chess.SquareSet(chess.square(file, r) for r in range(rank + 1, 8))
            behind = chess.SquareSet(chess.square(file, r) for r in range(rank))
            goal = chess.square(file, 7)
            king_steps = chess.square_distance(self.enemy_king, goal) - (not self.board.turn)
            if bare and not path & self.occupied and king_steps > min(len(path), 5):
                outruns = True
            if rank < 3:
                continue
            step = rank - 3
            self.add("PASSED_ROOK_BEHIND", 0, bool(behind & self.board.pieces(chess.ROOK, True)))
            self.add("PASSED_ROOK_BEHIND", 1, bool(behind & self.board.pieces(chess.ROOK, False)))
            if pawn + 8 in self.occupied:
                self.add("PASSED_BLOCKED", step + 4 * (pawn + 8 in self.enemies))
                continue
            if not path & (self.occupied | theirs):
                self.add("PASSED_FREE", step)
            elif pawn + 8 not in theirs:
                self.add("PASSED_SAFE", step)
            if pawn + 8 in self.attacked(True):
                self.add("PASSED_DEFENDED", step)
        if outruns:
            self.add("UNSTOPPABLE")

    def space_terms(self) -> None:
        centre = chess.SquareSet(chess.square(f, r) for f in range(2, 6) for r in range(1, 4))
        safe = centre & ~self.pawns & ~self.by(False, chess.PAWN)
        self.add("SPACE", 0, len(safe))
        for square in safe & ~self.attacked(False):
            if any(square + 8 * steps in self.pawns for steps in (1, 2, 3)):
                self.add("SPACE", 1)


def counts_of_white(board: chess.Board) -> Counts:
    """Return how often White has each term."""
    side = Side(board)
    side.pawn_terms()
    side.shelter_terms()
    side.piece_terms()
    side.add("DANGER", min(max(side.danger(), 0) // DANGER_STEP, DANGER_STEPS - 1))
    side.threat_terms()
    side.passed_terms()
    side.space_terms()
    side.add("TEMPO", 0, board.turn)
    return side.counts


def rest_of(board: chess.Board, phase: int) -> int:
    """R before it is clamped, without the driving of bare kings: White minus Black, tapered."""
    counts = counts_of_white(board)
    counts.subtract(counts_of_white(board.mirror()))
    middle_game, end_game = (
        sum(count * term_pairs(TERM[name])[place][part] for (name, place), count in counts.items()) for part in range(2)
    )
    return taper(middle_game, end_game, phase)


def unscaled(board: chess.Board, phase: int) -> int:
    """M + clamp(R) for the side to move: the evaluation where nothing is scaled and no bare king is driven."""
    value = psq_sum(board, phase) + min(max(rest_of(board, phase), -REST_BOUND), REST_BOUND)
    return value if board.turn else -value
