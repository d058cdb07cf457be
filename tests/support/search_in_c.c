/* Runs a search that a Python program has set up and written to a file, on another processor's emulator:
   search_in_c FILE OFFSETS.. -- see test_aarch64.py. One thread a worker; prints nodes, score and best move. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER, WORKERS, STACKS, FRAMES, TABLES, BYTES, TABLE_BYTES, COUNT, WORKER_BYTES, SCORE, BEST_MOVE, NUMBERS };

int64_t psearch_work(int64_t context, int64_t worker, int64_t bursts);

static int64_t context[9];

static void *run(void *worker)
{
    while (!psearch_work((int64_t)context, (int64_t)worker, 1000))
        ;
    return NULL;
}

int main(int count, char **words)
{
    int64_t number[NUMBERS], nodes = 0;
    if (count != 2 + NUMBERS)
        return 2;
    for (int i = 0; i < NUMBERS; i++)
        number[i] = atoll(words[2 + i]);
    char *block = aligned_alloc(4096, (number[BYTES] + 4095) / 4096 * 4096);
    char *table = aligned_alloc(4096, number[TABLE_BYTES]);
    FILE *file = fopen(words[1], "rb");
    if (!file || fread(block, 1, number[BYTES], file) != (size_t)number[BYTES])
        return 3;
    memset(table, 0, number[TABLE_BYTES]);
    for (int i = HEADER; i <= TABLES; i++)
        context[i] = (int64_t)block + number[i];
    context[5] = (int64_t)table;
    context[6] = number[TABLE_BYTES] / 64;
    pthread_t thread[64];
    for (int64_t i = 0; i < number[COUNT]; i++)
        pthread_create(&thread[i], NULL, run, (void *)i);
    for (int64_t i = 0; i < number[COUNT]; i++) {
        pthread_join(thread[i], NULL);
        nodes += *(int64_t *)(block + number[WORKERS] + i * number[WORKER_BYTES]);
    }
    int64_t *header = (int64_t *)(block + number[HEADER]);
    printf("%ld %ld %ld\n", (long)nodes, (long)header[number[SCORE] / 8], (long)header[number[BEST_MOVE] / 8]);
    return 0;
}
