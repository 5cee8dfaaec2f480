/** Those of Node under which the daemon is run (package.json, Dockerfile, systemd unit); tests of memory use them too. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=2'];

/** How the C library allocates memory in the image and under systemd. */
export const ALLOCATION = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072' };
