const counts = new Map<string, number>();

/** Notes that this process, in whatever thread, has the file open; `path` is its real path. Returns what undoes it. */
export function noteOpen(path: string): () => void {
  counts.set(path, (counts.get(path) ?? 0) + 1);
  return () => {
    counts.set(path, (counts.get(path) ?? 1) - 1);
  };
}

export function isOpenHere(path: string): boolean {
  return (counts.get(path) ?? 0) > 0;
}
