const counts = new Map<string, number>();

/** Records that a thread of this process has the file open, by its real path. Returns the function that undoes it. */
export function noteOpen(path: string): () => void {
  counts.set(path, (counts.get(path) ?? 0) + 1);
  return () => {
    counts.set(path, (counts.get(path) ?? 1) - 1);
  };
}

export function isOpenHere(path: string): boolean {
  return (counts.get(path) ?? 0) > 0;
}
