/* Writes recordings of a parallel search for the page of psearch (docs/guides/recordings.md).
   One thread at a time may call these functions: hold a lock, or let each thread keep its stretches until the end.

     FILE *out = recording_begin("search.jsonl", "my engine", "policy", 4, fen);
     recording_stretch(worker, RECORDING_SEARCH, from_us, until_us, "n17");     the node may be NULL
     recording_node("n17", NULL, "e2e4 e7e5", "e4 e5", "CUT", 12, -30, -29);    what is open now
     recording_look(out, now_us, is_done);                                     writes and forgets the above          */
#ifndef RECORDING_H
#define RECORDING_H
#include <stdio.h>
#include <string.h>

enum { RECORDING_SEARCH, RECORDING_JOIN, RECORDING_IDLE, RECORDING_WASTED };
enum { RECORDING_WORKERS = 64, RECORDING_ROOM = 1 << 16 };
static char recording_tracks[RECORDING_WORKERS][RECORDING_ROOM], recording_nodes[RECORDING_ROOM];
static size_t recording_used[RECORDING_WORKERS], recording_nodes_used;
static int recording_workers;
static long long recording_before;
static char recording_fen[128];

static inline FILE *recording_begin(const char *path, const char *by, const char *policy, int workers, const char *fen) {
    FILE *out = fopen(path, "w");
    if (!out) return NULL;
    recording_workers = workers < RECORDING_WORKERS ? workers : RECORDING_WORKERS;
    snprintf(recording_fen, sizeof recording_fen, "%s", fen);
    fprintf(out, "{\"psearch_recording\":1,\"by\":\"%s\",\"policy\":\"%s\",\"workers\":%d,\"clock\":\"real\"}\n",
            by, policy, recording_workers);
    return out;
}

static inline void recording_stretch(int worker, int kind, long long begin, long long end, const char *node) {
    size_t *used = &recording_used[worker];
    if (worker >= recording_workers || end <= begin || *used + 200 > RECORDING_ROOM) return;
    char *to = recording_tracks[worker] + *used;
    const char *comma = *used ? "," : "";
    *used += node ? snprintf(to, 200, "%s[%d,%lld,%lld,\"%.99s\"]", comma, kind, begin, end, node)
                  : snprintf(to, 200, "%s[%d,%lld,%lld]", comma, kind, begin, end);
}

static inline void recording_words(const char *name, const char *words) { /* "e4 e5" becomes "name":["e4","e5"] */
    char copy[256], *word, *comma = "";
    snprintf(copy, sizeof copy, "%s", words);
    recording_nodes_used += sprintf(recording_nodes + recording_nodes_used, ",\"%s\":[", name);
    for (word = strtok(copy, " "); word; word = strtok(NULL, " "), comma = ",")
        recording_nodes_used += sprintf(recording_nodes + recording_nodes_used, "%s\"%s\"", comma, word);
    recording_nodes_used += sprintf(recording_nodes + recording_nodes_used, "]");
}

static inline void recording_node(const char *id, const char *parent, const char *moves, const char *words, const char *type,
                           int depth, int alpha, int beta) {
    if (recording_nodes_used + 2000 > RECORDING_ROOM) return;
    char *to = recording_nodes + recording_nodes_used;
    recording_nodes_used += sprintf(to, "%s{\"id\":\"%.99s\",\"type\":\"%s\",\"depth\":%d,\"alpha\":%d,\"beta\":%d",
                                    recording_nodes_used ? "," : "", id, type, depth, alpha, beta);
    if (parent) recording_nodes_used += sprintf(recording_nodes + recording_nodes_used, ",\"parent\":\"%.99s\"", parent);
    recording_words("moves", moves);
    recording_words("words", words);
    recording_nodes_used += sprintf(recording_nodes + recording_nodes_used, "}");
}

static inline void recording_look(FILE *out, long long now, int is_done) {
    fprintf(out, "{\"begin\":%lld,\"now\":%lld,\"done\":%s,\"fen\":\"%s\",\"tracks\":[", recording_before, now,
            is_done ? "true" : "false", recording_fen);
    for (int worker = 0; worker < recording_workers; worker++) {
        fprintf(out, "%s[%.*s]", worker ? "," : "", (int)recording_used[worker], recording_tracks[worker]);
        recording_used[worker] = 0;
    }
    fprintf(out, "],\"nodes\":[%.*s]}\n", (int)recording_nodes_used, recording_nodes);
    recording_nodes_used = 0;
    recording_before = now;
}
#endif
