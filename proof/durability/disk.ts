import type { Step } from './traced.ts';

/** Unit that a disk keeps or loses, bytes. */
const SECTOR = 512;

type Change = { readonly at: number; readonly data: Buffer } | { readonly size: number };

/** Content of a file: what is durable, and the changes since, in order. */
interface Inode {
  durable: Buffer;
  pending: Change[];
}

/** A new name of a file, or the end of a name. */
type Naming = readonly [name: string, inode: Inode | undefined];

/** Disk that guarantees nothing but fsync. */
export class Disk {
  /** Files as a process sees them. */
  readonly #names = new Map<string, Inode>();
  readonly #durableNames = new Map<string, Inode>();
  #pendingNames: Naming[] = [];

  apply(step: Step): void {
    if (step.type === 'tell') return;
    if (step.type === 'sync directory') {
      for (const naming of this.#pendingNames) setName(this.#durableNames, naming);
      this.#pendingNames = [];
      return;
    }
    if (step.type === 'create' || step.type === 'remove') {
      const inode = step.type === 'create' ? { durable: Buffer.alloc(0), pending: [] } : undefined;
      setName(this.#names, [step.file, inode]);
      this.#pendingNames.push([step.file, inode]);
      return;
    }
    const inode = this.#names.get(step.file);
    if (inode === undefined) throw new Error(`no file ${step.file}`);
    if (step.type === 'write') inode.pending.push(...inSectors(step.at, step.data));
    else if (step.type === 'truncate') inode.pending.push({ size: step.size });
    else {
      inode.durable = changed(inode.durable, inode.pending);
      inode.pending = [];
    }
  }

  /**
   * Returns the files that a power cut leaves, by name. `keeps` decides for each unsynced change, names included, whether it
   * survives.
   */
  cut(keeps: () => boolean): ReadonlyMap<string, Buffer> {
    const left = new Map(this.#durableNames);
    for (const naming of this.#pendingNames) if (keeps()) setName(left, naming);
    return new Map(
      [...left].map(([name, { durable, pending }]) => [
        name,
        changed(durable, pending.filter(keeps)),
      ]),
    );
  }
}

function setName(names: Map<string, Inode>, [name, inode]: Naming): void {
  if (inode === undefined) names.delete(name);
  else names.set(name, inode);
}

function inSectors(at: number, data: Buffer): readonly Change[] {
  const changes: Change[] = [];
  for (let from = at; from < at + data.length;) {
    const to = Math.min((Math.floor(from / SECTOR) + 1) * SECTOR, at + data.length);
    changes.push({ at: from, data: data.subarray(from - at, to - at) });
    from = to;
  }
  return changes;
}

function changed(content: Buffer, changes: readonly Change[]): Buffer {
  const ends = changes.map((change) =>
    'size' in change ? change.size : change.at + change.data.length,
  );
  const result = Buffer.alloc(ends.reduce((most, end) => Math.max(most, end), content.length));
  content.copy(result);
  let size = content.length;
  for (const change of changes) {
    if ('size' in change) {
      size = change.size;
      result.fill(0, size);
    } else {
      change.data.copy(result, change.at);
      size = Math.max(size, change.at + change.data.length);
    }
  }
  return result.subarray(0, size);
}
