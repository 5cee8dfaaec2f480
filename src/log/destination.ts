import { writeSync } from 'node:fs';

/** Writes a line with its line feed, whole, before it returns; throws if it cannot. */
export interface Destination {
  write(line: string): void;
}

const RETRY_AFTER_MS = 5;

/**
 * Writes to a file descriptor. While a pipe is full, it blocks the whole process, so that no line is lost.
 * @throws {Error} with a system `code`, such as EPIPE or ENOSPC
 */
export function fileDescriptor(fd: number): Destination {
  return {
    write(line) {
      let rest: Buffer = Buffer.from(line);
      while (rest.length > 0) rest = rest.subarray(writeSome(fd, rest));
    },
  };
}

/** Returns the number of bytes written; 0 if the pipe was full and it has slept before a retry. */
function writeSome(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    if (!isFull(error)) throw error;
    sleep(RETRY_AFTER_MS);
    return 0;
  }
}

/** Whether a pipe is full: another process made it non-blocking, and its reader is slow. */
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

const never = new Int32Array(new SharedArrayBuffer(4));

function sleep(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
