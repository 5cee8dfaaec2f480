/** Of the server, as docs/scaling.md has them. */
export const SETTINGS = [
  'shared_buffers=512MB',
  'max_wal_size=4GB',
  'wal_compression=zstd',
] as const;
