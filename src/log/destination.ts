import { writeSync } from 'node:fs';

/** Takes a line with its line feed, whole, before it returns; throws if it cannot. */
export interface Destination {
  write(line: string): void;
}

const RETRY_AFTER_MS = 5;

/**
 * Writes to a file descriptor. A pipe whose reader stalls is waited for, so that no line is lost, and holds the whole
 * process. @throws {Error} the system's, EPIPE or ENOSPC say
 */
export function fileDescriptor(fd: number): Destination {
  return {
    write(line) {
      let rest: Buffer = Buffer.from(line);
      while (rest.length > 0) rest = rest.subarray(writeSome(fd, rest));
    },
  };
}

/** Returns the number of bytes written, 0 after a wait for room. */
function writeSome(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    if (!isFull(error)) throw error;
    sleep(RETRY_AFTER_MS);
    return 0;
  }
}

/** The pipe is: somebody made it non-blocking, and its reader is slow. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

const never = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
