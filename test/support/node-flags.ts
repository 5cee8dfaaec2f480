/** Node flags of the daemon (package.json, Dockerfile, systemd unit), also used by tests of memory. */
export const NODE_FLAGS: readonly string[] = ['--max-semi-space-size=2'];

/** Environment that configures the C library's allocator in the image and under systemd. */
export const ALLOCATION = { MALLOC_ARENA_MAX: '1', MALLOC_MMAP_THRESHOLD_: '131072' };
