"""Make the recordings with guided tours that the page ships: `python bench/study/tours.py`.

Each is a search in virtual time, so that every machine makes the same files. The moments and figures of a tour are
found in its recording: the texts stay true when the search changes.
"""

# ruff: noqa: E501 (the lines of the tours' texts)

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psearch
from psearch.lab.watching.laboratory import Experiment, run
from psearch.lab.watching.recordings import VERSION
from psearch.lab.watching.tracks import IDLE

FOLDER = Path(psearch.__file__).parent / "faces" / "web" / "static" / "recordings"
FENS = (
    "r1bq1rk1/pp2bppp/2n1pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QK2R w KQ - 4 8",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3",
    "2rq1rk1/pb1n1ppp/1p2pn2/3p4/3P4/P1PBPN2/1B1N1PPP/R2Q1RK1 w - - 1 13",
)
Seen = dict[str, Any]
"""A node in a snapshot, with `now` and its whole `line`."""


def searched(fen: str, workers: int, nodes: int, *policies: str) -> list[dict[str, Any]]:
    return list(run(Experiment(fen, False, workers, policies, nodes, looks=True), lambda text, share: None)["runs"])


def nodes_of(found: dict[str, Any]) -> Iterator[Seen]:
    """Yield each node of each snapshot."""
    for look in found["looks"]:
        lines: dict[Any, list[str]] = {None: []}
        for node in look["nodes"]:
            lines[node["id"]] = [*lines.get(node["parent"], []), *node["words"]]
            yield {**node, "now": look["now"], "line": " ".join(lines[node["id"]]) or "root"}


def closed_of(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    events = [event for look in found["looks"] for event in look["events"] if event["kind"] == "closed"]
    return {event["id"]: event for event in events}


def idle_share(found: dict[str, Any], begin: int, end: int) -> float:
    spent = 0
    for look in found["looks"]:
        for track in look["tracks"]:
            spent += sum(max(0, min(part[2], end) - max(part[1], begin)) for part in track if part[0] == IDLE)
    return spent / max(end - begin, 1) / found["workers"]


def percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def pawns(value: int | None) -> str:
    return "no value yet" if value is None else f"{value / 100:+.2f}"


def all_node() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    best: tuple[int, Any] = (0, None)
    for fen in FENS:
        runs = searched(fen, 4, 12_000, "calibrated", "ybw")
        early, late = ([node for node in nodes_of(found) if node["type"] == "ALL"] for found in runs)
        ends = [closed_of(found) for found in runs]
        for one in early:
            if one["done"] or one["inside"] < 2 or one["id"] not in ends[0]:
                continue
            for other in late:
                if other["done"] and other["joined"]:
                    is_same = other["line"] == one["line"]
                    is_right = ends[0][one["id"]]["outcome"] == "exhausted"
                    rank = 200 * is_right + 100 * is_same + 10 * one["depth"] + other["depth"] + one["inside"]
                    best = max(best, (rank, (runs, one, other, ends)), key=lambda found: found[0])
    runs, early, late, ends = best[1]
    first, second = runs
    whole = max(first["end"], second["end"])
    end = ends[0][early["id"]]
    lost = sum(found["looks"][-1]["counters"]["aborted_nodes"] for found in runs)
    opened = [found["looks"][-1]["counters"]["splits"] for found in runs]
    near = max(60, whole // 12)
    steps = [
        {
            "text": "One position, searched twice by four workers in virtual time. Above, calibrated: a node is shared as soon "
            "as its moves will probably all be needed. Below, ybw, young brothers wait: a node is shared only after its "
            f"first move has been searched. Speedups here: {first['speedup']:.2f} and {second['speedup']:.2f}.",
            "at": whole,
        },
        {
            "text": "Green is search, blue a join, a thin line is a worker without work, red is work that was thrown away. The "
            "violet lines are the ends of iterations, with their depths.",
            "at": whole // 2,
            "span": whole // 4,
        },
        {
            "text": f"Above, {early['line']} is an ALL node of depth {early['depth']}: no move is expected to raise alpha, so all "
            f"of them must be searched. psearch puts the probability that no move cuts off at {percent(early['p_no_cutoff'])}.",
            "at": early["now"],
            "span": near,
            "node": early["id"],
        },
        {
            "text": f"It is shared at once: no move is finished yet, and {early['inside']} workers are inside. The node is "
            f"needed with probability {percent(early['p_needed'])}, its next move with {percent(early['p_next'])}.",
            "at": early["now"],
            "span": near,
            "node": early["id"],
        },
        {
            "text": f"Its window is {pawns(early['alpha'])} to {pawns(early['beta'])} for the side to move. A move that reaches "
            "the upper end would cut the node off, and what the others search there would be lost. That is the risk of sharing.",
            "at": early["now"],
            "span": near,
            "node": early["id"],
        },
        {
            "text": f"It ends with {'all moves searched' if end['outcome'] == 'exhausted' else 'a cutoff'}, after {end['helpers']} joins and {end['lost']:,} nodes lost. "
            + (
                "The prediction was right: sharing cost nothing."
                if end["outcome"] == "exhausted"
                else "It was wrong here."
            ),
            "at": end["at"] + 1,
            "span": near,
        },
        {
            "text": f"Below, {'the same node' if late['line'] == early['line'] else 'the ALL node ' + late['line']} under ybw. When it is seen shared, {late['done']} of its moves are finished: one "
            "worker searched the first move alone, however certain it was that the others are needed, too.",
            "at": late["now"],
            "span": near,
            "node": late["id"],
            "stage": 1,
        },
        {
            "text": f"What waiting costs is time without work: workers are idle for {percent(first['idle'])} of the time above and "
            f"{percent(second['idle'])} below. What it saves is work at nodes that are cut off by their first move.",
            "at": whole,
        },
        {
            "text": f"Thrown away were {percent(first['aborted'])} of the nodes above and {percent(second['aborted'])} below, "
            f"{lost:,} in all; shared were {opened[0]:,} nodes above and {opened[1]:,} below.",
            "at": whole,
        },
        {
            "text": "One position proves nothing: which rule wins changes from position to position. Set up another one, press "
            "Compare with, and look for ALL nodes that are shared with no move done.",
            "at": whole,
        },
    ]
    return runs, steps


def cut_node() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    best: tuple[int, Any] = (0, None)
    for fen in FENS:
        (found,) = searched(fen, 8, 20_000, "calibrated")
        ends, seen = closed_of(found), list(nodes_of(found))
        for node in seen:
            end = ends.get(node["id"])
            if node["type"] == "CUT" and end and end["outcome"] == "exhausted" and node["joined"]:
                best = max(
                    best, (node["depth"] * 100 + end["helpers"], (found, node, end, ends, seen)), key=lambda one: one[0]
                )
    found, wrong, end, ends, seen = best[1]
    whole = found["end"]
    near = max(60, whole // 15)
    typical = [node for node in seen if node["type"] == "CUT" and node["id"] != wrong["id"] and node["depth"] >= 3]
    right = min(typical, key=lambda node: float(node["p_no_cutoff"]))
    views = [node for node in seen if node["id"] == wrong["id"]]
    lost = max(
        (one for one in ends.values() if one["outcome"] == "cutoff" and one["words"]), key=lambda one: one["lost"]
    )
    before = [node for node in seen if node["id"] == lost["id"]][-1]
    share = found["aborted"]
    steps = [
        {
            "text": "Eight workers in virtual time, policy calibrated. Every open node has a type that was expected when it was "
            "entered: PV, CUT or ALL. The type decides whether it is worth sharing. This tour is about expectations that fail.",
            "at": whole,
        },
        {
            "text": f"A CUT node, {right['line']}: one of its moves will probably reach beta, {pawns(right['beta'])} for the side to "
            f"move. Then the rest is not needed. No cutoff has a probability of {percent(right['p_no_cutoff'])} only.",
            "at": right["now"],
            "span": near,
            "node": right["id"],
        },
        {
            "text": f"Its next move is therefore needed with {percent(right['p_next'])} only. Workers that have something better to do "
            "do not come here; idle ones may.",
            "at": right["now"],
            "span": near,
            "node": right["id"],
        },
        {
            "text": f"Now the node {wrong['line']}, depth {wrong['depth']}, also expected to be cut off.",
            "at": views[0]["now"],
            "span": near,
            "node": wrong["id"],
        },
        {
            "text": f"Its window is {pawns(views[0]['alpha'])} to {pawns(views[0]['beta'])}, its best value so far "
            f"{pawns(views[0]['best'])}; {views[0]['done']} moves are done, {views[0]['to_come']} are left.",
            "at": views[0]["now"],
            "span": near,
            "node": wrong["id"],
        },
        {
            "text": f"Later {views[-1]['done']} moves are done, and none has reached beta. Each of them makes a cutoff less likely: "
            f"no cutoff has now {percent(views[-1]['p_no_cutoff'])}. {views[-1]['joined']} workers have joined so far.",
            "at": views[-1]["now"],
            "span": near,
            "node": wrong["id"],
        },
        {
            "text": f"It closes with all moves searched: it was an ALL node. The {end['helpers']} helpers lost nothing, because every "
            "move was needed. Waiting for a cutoff that never came, they would have been idle.",
            "at": end["at"] + 1,
            "span": near,
        },
        {
            "text": f"The other error. {before['line']} is a {before['type']} node with no cutoff at {percent(before['p_no_cutoff'])}, "
            f"and {before['inside']} workers are inside, each at a move of its own: see the arrows.",
            "at": before["now"],
            "span": near,
            "node": before["id"],
        },
        {
            "text": f"Then {lost['by']} reaches beta: a cutoff. {lost['helpers']} helpers had joined, and {lost['lost']:,} nodes are "
            "thrown away. They are the red part of the tracks just before this moment.",
            "at": lost["at"] + 1,
            "span": near,
        },
        {
            "text": f"In the whole search {percent(share)} of the nodes were thrown away. Whether P(no cutoff) is right on average is "
            "shown by the tab Laboratory, under: were the predictions right?",
            "at": whole,
        },
    ]
    return [found], steps


def idle() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    (found,) = searched(FENS[1], 32, 34_000, "calibrated")
    whole, looks = found["end"], thinned(found["looks"])
    found["looks"] = looks
    width = whole // 20
    windows = sorted((idle_share(found, at, at + width), at) for at in range(0, whole - width, width // 2))
    middle = [window for window in windows if window[1] > whole // 3]
    worst, best_one = middle[-1], middle[0]
    roots = [event for look in looks for event in look["events"] if event.get("main")]
    last = [event for event in roots if event["at"] < whole - width][-1]
    serial = max(nodes_of(found), key=lambda node: (node["below"] if node["ply"] else 0, node["depth"]))

    def at_or_before(time: int) -> dict[str, Any]:
        return [look for look in looks if look["now"] <= time][-1]

    few, many = at_or_before(worst[1] + width), at_or_before(best_one[1] + width)
    steps = [
        {
            "text": f"Thirty-two workers in virtual time. They are {found['speedup']:.1f} times as fast as one, not 32 times: "
            f"{percent(found['idle'])} of their time they are idle, and {found['overhead']:.2f} times as many nodes are searched.",
            "at": whole,
        },
        {
            "text": f"The beginning. Iterations of a few plies are over before 32 workers find work: they are idle for "
            f"{percent(idle_share(found, 0, whole // 10))} of the first tenth of the time.",
            "at": whole // 10,
            "span": whole // 10,
        },
        {
            "text": f"The end of an iteration, depth {last['depth']}, at the violet line: the last moves of the root are being searched, "
            f"and nothing else may begin. Idle around it: {percent(idle_share(found, last['at'] - width // 2, last['at'] + width // 2))}.",
            "at": last["at"] + width // 2,
            "span": width,
        },
        {
            "text": "The next iteration begins with its principal variation: one line, whose first moves must be searched before "
            "anything beside it is worth sharing. Watch the tracks after the line.",
            "at": last["at"] + width,
            "span": width,
        },
        {
            "text": f"The emptiest stretch of the later search: {percent(worst[0])} idle, {len(few['nodes'])} nodes open at its end.",
            "at": few["now"],
            "span": width,
        },
        {
            "text": f"The fullest one: {percent(best_one[0])} idle, {len(many['nodes'])} nodes open at its end. More open nodes, more "
            "moves to take.",
            "at": many["now"],
            "span": width,
        },
        {
            "text": f"Most workers below one node: {serial['below']} of 32 are at or below {serial['line']}, depth {serial['depth']}. "
            "They search its moves, and the nodes below these.",
            "at": serial["now"],
            "span": width,
            "node": serial["id"],
        },
        {
            "text": "Blue everywhere: small nodes are over soon, and their workers look for the next. A join costs time, too, which "
            "is why nodes below some depth are never shared.",
            "at": many["now"],
            "span": max(100, width // 4),
        },
        {
            "text": f"Red: {percent(found['aborted'])} of the nodes are thrown away. More workers would be busy if more CUT nodes were "
            "shared, but with this colour.",
            "at": whole,
        },
        {
            "text": "Larger trees have more to share: search this position in virtual time with 400,000 nodes, and with 8 workers, "
            "and compare idle time and speedup.",
            "at": whole,
        },
    ]
    return [found], steps


def thinned(looks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join snapshots in pairs, with the nodes of the second one."""
    pairs = zip(looks[::2], looks[1::2], strict=True)
    return [
        {
            **last,
            "begin": first["begin"],
            "tracks": [one + other for one, other in zip(first["tracks"], last["tracks"], strict=True)],
            "events": first["events"] + last["events"],
        }
        for first, last in pairs
    ]


def write(name: str, title: str, make: Callable[[], tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> None:
    runs, steps = make()
    assert len(steps) == 10
    lines: list[dict[str, Any]] = []
    for number, found in enumerate(runs):
        facts = {key: found[key] for key in ("policy", "workers", "speedup", "overhead", "idle", "aborted")}
        facts |= {"title": f"{title}: {found['policy']}", "clock": "virtual"}
        lines.append({"psearch_recording": VERSION, "by": "psearch", **facts, **({} if number else {"tour": steps})})
        lines += [{**look, "policy": found["policy"]} for look in found["looks"]]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    data = gzip.compress(text.encode(), 9, mtime=0)
    (FOLDER / f"{name}.jsonl.gz").write_bytes(data)
    print(f"{name}: {len(data):,} bytes, {len(text):,} uncompressed")
    for step in steps:
        print("   ", step["at"], step.get("node"), step["text"])


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    write("all-node", "An ALL node", all_node)
    write("cut-node", "A CUT node", cut_node)
    write("idle", "32 workers", idle)
