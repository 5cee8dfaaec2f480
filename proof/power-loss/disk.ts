import type { Step } from './recording.ts';

/** Unit that a disk keeps or loses, bytes. */
const SECTOR = 512;

type Change =
  { readonly at: number; readonly data: Buffer; readonly size?: never } | { readonly size: number };

/** Content of a file: what is durable, and the changes since, in order. */
interface Inode {
  durable: Buffer;
  pending: Change[];
}

/** Files of a directory after a power cut, by name. */
export type Image = ReadonlyMap<string, Buffer>;

export interface Disk {
  apply(step: Step): void;
  /** Returns what a power cut leaves. `keeps` decides for each unsynced change, file names included, whether it survives. */
  cut(keeps: () => boolean): Image;
}

/** Creates a disk that guarantees nothing but fsync. */
export function createDisk(): Disk {
  /** Files as a process sees them. */
  const names = new Map<string, Inode>();
  const durableNames = new Map<string, Inode>();
  let pendingNames: (readonly [name: string, inode: Inode | undefined])[] = [];

  function inodeOf(file: string): Inode {
    const inode = names.get(file);
    if (inode === undefined) throw new Error(`no file ${file}`);
    return inode;
  }

  return {
    apply(step) {
      switch (step.type) {
        case 'create': {
          const inode = { durable: Buffer.alloc(0), pending: [] };
          names.set(step.file, inode);
          pendingNames.push([step.file, inode]);
          break;
        }
        case 'remove':
          names.delete(step.file);
          pendingNames.push([step.file, undefined]);
          break;
        case 'sync directory':
          for (const entry of pendingNames) setName(durableNames, entry);
          pendingNames = [];
          break;
        case 'write':
          inodeOf(step.file).pending.push(...inSectors(step.at, step.data));
          break;
        case 'truncate':
          inodeOf(step.file).pending.push({ size: step.size });
          break;
        case 'sync': {
          const inode = inodeOf(step.file);
          inode.durable = changed(inode.durable, inode.pending);
          inode.pending = [];
          break;
        }
        case 'acknowledge':
          break;
      }
    },
    cut(keeps) {
      const left = new Map(durableNames);
      for (const entry of pendingNames) if (keeps()) setName(left, entry);
      return new Map(
        [...left].map(([name, { durable, pending }]) => [
          name,
          changed(
            durable,
            pending.filter(() => keeps()),
          ),
        ]),
      );
    },
  };
}

function setName(
  names: Map<string, Inode>,
  [name, inode]: readonly [name: string, inode: Inode | undefined],
): void {
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
  if (changes.length === 0) return content;
  let size = content.length;
  let most = size;
  for (const change of changes) {
    size = change.size ?? Math.max(size, change.at + change.data.length);
    most = Math.max(most, size);
  }
  const result = Buffer.alloc(most);
  content.copy(result);
  let end = content.length;
  for (const change of changes) {
    if (change.size !== undefined) {
      end = change.size;
      result.fill(0, end);
    } else {
      change.data.copy(result, change.at);
      end = Math.max(end, change.at + change.data.length);
    }
  }
  return result.subarray(0, end);
}
