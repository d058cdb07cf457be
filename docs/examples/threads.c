/* Four threads share the root moves of a made-up tree and write a recording: cc -O2 -pthread -o threads threads.c */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include "recording.h"

enum { THREADS = 4, ROOT_MOVES = 8, DEPTHS = 6 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int next_move, depth = 1;
static struct timespec start;
static FILE *out;

static long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start.tv_sec) * 1000000LL + (now.tv_nsec - start.tv_nsec) / 1000;
}

static unsigned search(unsigned position, int plies) { /* a tree of three moves a node */
    unsigned value = position * 2654435761u >> 7;
    for (unsigned move = 1; plies && move <= 3; move++) value ^= search(position * 5 + move, plies - 1);
    return value;
}

static void *work(void *argument) {
    int worker = (int)(size_t)argument;
    volatile unsigned sum = 0;
    while (depth <= DEPTHS) {
        long long free_since = now_us();
        for (;;) {
            pthread_mutex_lock(&lock);
            int move = next_move < ROOT_MOVES ? next_move++ : -1;
            pthread_mutex_unlock(&lock);
            if (move < 0) break;
            long long begin = now_us();
            sum += search((unsigned)move, depth + 8 + move % 3);
            free_since = now_us();
            pthread_mutex_lock(&lock);
            recording_stretch(worker, RECORDING_SEARCH, begin, free_since, "root");
            pthread_mutex_unlock(&lock);
        }
        int is_last = pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
        pthread_mutex_lock(&lock);
        recording_stretch(worker, RECORDING_IDLE, free_since, now_us(), NULL);
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
        if (is_last) { /* the iteration is over: one thread writes what was seen of it */
            recording_node("root", NULL, "", "", "PV", depth, -32000, 32000);
            recording_look(out, now_us(), depth == DEPTHS);
            next_move = 0;
            depth++;
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(int count, char **words) {
    const char *fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
    pthread_t threads[THREADS];
    if (count != 2 || !(out = recording_begin(words[1], "threads.c", "root moves", THREADS, fen))) {
        fprintf(stderr, "usage: threads FILE (that can be written)\n");
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (size_t worker = 0; worker < THREADS; worker++) pthread_create(&threads[worker], NULL, work, (void *)worker);
    for (int worker = 0; worker < THREADS; worker++) pthread_join(threads[worker], NULL);
    return fclose(out) ? 1 : 0;
}
