import { debianTool } from '../test/support/debian-tool.ts';
import { required } from './row.ts';

/** Returns the path of strace, installed if missing. @throws {Unavailable} if that is not possible */
export function findStrace(): string {
  return required('strace', debianTool('strace', 'strace'));
}
