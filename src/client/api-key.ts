import type { SecretSource } from '../domain/options.ts';
import { describeFault, readFile } from '../files/read-file.ts';
import { ApiError } from '../monitor/errors.ts';
import type { Clock } from '../monitor/ports/clock.ts';
import { createScrub, type Scrub } from './secrets.ts';

const MIN_KEY_LENGTH = 8;
const MAX_FILE_BYTES = 16 * 1024;
/** Wait before the second read: a file that is being replaced can be missing or empty for a moment, ms. */
const REREAD_AFTER_MS = 100;

const HIDDEN_PATH =
  '; its path is not shown because it could be the key itself: api_key_file takes the path of a file that holds the key';

/** An API key, as it was read for a request. */
export interface ApiKey {
  readonly text: string;
  /** Hides this key and the one that its source had before: a service may repeat the old key for a while. */
  readonly scrub: Scrub;
}

/** Reads the key of a source. @throws {ApiError} as `readKey` */
export type ReadApiKey = (source: SecretSource | undefined) => Promise<ApiKey>;

/** Creates a reader that remembers the last two keys of each source. The key stays the same object until it is rotated. */
export function createApiKeyReader(clock: Pick<Clock, 'sleep'>): ReadApiKey {
  const last = new Map<string, ApiKey>();
  return async (source) => {
    const text = await readKey(source, clock);
    const place = JSON.stringify(source && ('file' in source ? [source.file] : source.env));
    const before = last.get(place);
    if (before?.text === text) return before;
    const key = { text, scrub: createScrub(before === undefined ? [text] : [text, before.text]) };
    last.set(place, key);
    return key;
  };
}

/**
 * Reads the key and trims white space (docs/specification.md#api-keys). Every call reads the file, so a rotated key
 * works at once. Error messages contain nothing of the text that was read.
 * @throws {ApiError} `auth`, if the key is missing or unusable
 */
export async function readKey(
  source: SecretSource | undefined,
  clock: Pick<Clock, 'sleep'>,
): Promise<string> {
  if (source === undefined) throw new ApiError('auth', 'the project has no API key');
  try {
    return readOnce(source);
  } catch (error) {
    if ('env' in source) throw error;
    await clock.sleep(REREAD_AFTER_MS);
    return readOnce(source);
  }
}

function readOnce(source: SecretSource): string {
  const place = 'file' in source ? `the key file ${source.file}` : `the variable ${source.env}`;
  const text = 'file' in source ? readKeyFile(source) : source.value;
  const key = text?.trim() ?? '';
  const fault = faultOf(key);
  if (fault !== undefined) throw new ApiError('auth', `${place} ${fault}`);
  return key;
}

function faultOf(key: string): string | undefined {
  if (key === '') return 'is empty';
  if (/[\r\n]/.test(key)) return 'has several lines';
  if (!/^[\x20-\x7e]+$/.test(key)) {
    return 'has a character that is not printable ASCII';
  }
  return key.length < MIN_KEY_LENGTH ? `has fewer than ${MIN_KEY_LENGTH} characters` : undefined;
}

function readKeyFile({ file, couldBeKey }: Extract<SecretSource, { file: string }>): string {
  const { bytes, fault } = readFile(file, MAX_FILE_BYTES);
  if (fault === undefined) return bytes.toString('utf8');
  const reason =
    fault === 'TOO_LARGE' ? 'is too large for a key' : `cannot be read: ${describeFault(fault)}`;
  const place = couldBeKey ? 'the key file' : `the key file ${file}`;
  throw new ApiError('auth', `${place} ${reason}${couldBeKey ? HIDDEN_PATH : ''}`);
}
