/** Settings of the server, as in docs/scaling.md. */
export const SETTINGS = [
  'shared_buffers=512MB',
  'max_wal_size=4GB',
  'wal_compression=zstd',
] as const;
